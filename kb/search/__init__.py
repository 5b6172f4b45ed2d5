"""From a question to the nearest issues, each with a score and a confidence.

In: pasted text and an opened store. Out: a `kb.records.SearchResult`.

    searcher   one opened snapshot and its encoder; `Searcher.search`
    features   the candidates for a question and their features
    terms      how much each term of a question says
    ranking    from features to score and confidence; weights.json holds the fitted weights

Nothing is imported here: numpy costs a start 80 ms, and `kb --help` needs none of it.
"""

__all__: list[str] = []
