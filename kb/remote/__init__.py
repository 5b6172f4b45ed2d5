"""A base that another `kb serve` has, asked over HTTP in limited time.

In: a question. Out: what the server says as a `kb.records.SearchResult`, or why it says nothing.

    client   the server: asking, waiting, giving up
    form     its JSON as values, checked
    kept     what it answered before, in the user's cache
"""

from kb.remote.client import Asking, RemoteBase

__all__ = ["Asking", "RemoteBase"]
