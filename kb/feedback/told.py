"""What every door does with feedback: a vote of somebody on an answer, and a question that nobody could answer."""

from __future__ import annotations

import ipaddress
import os
from typing import TYPE_CHECKING, Literal

from kb.errors import IndexMissing, QueryError
from kb.feedback.gist import gist
from kb.feedback.store import Feedback
from kb.feedback.voices import tally
from kb.logs.read import read
from kb.records import SearchResult

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["VERDICTS", "Said", "address_of", "cast", "note", "this_user"]

Said = Literal["helped", "did_not_fit", "none"]
VERDICTS: tuple[Said, ...] = ("helped", "did_not_fit", "none")
"""what a vote can say of an issue; `none` takes the vote back"""


def cast(
    feedback: Feedback, base: AnyBase, issue: str, said: Said, who: str, question: str | None = None
) -> tuple[str, float, float]:
    """Keeps a vote. Returns the issue and what people say of it for this question: voices that it helped, voices that
    it did not fit.

    `issue`: as `slug#n`. `who`: as in `Feedback.person`. `question`: what was asked, of which the masked lines are
    kept; None for a vote on the issue as such. Raises IndexMissing for an issue that is not there, QueryError,
    FeedbackError.
    """
    if said not in VERDICTS:
        raise QueryError(f"a vote is {said!r}, it can be {', '.join(VERDICTS)}")
    home, issue = _home(base, issue)
    about = gist(read(question)) if question is not None else None
    person = feedback.person(who)
    if said == "none":
        feedback.take_back(home, issue, about, person)
    else:
        feedback.vote(home, issue, about, person, helped=said == "helped")
    helped, against = tally(feedback.heard().get((home, issue), {}), about.family if about else None)
    return issue, helped, against


def note(feedback: Feedback, result: SearchResult, who: str) -> None:
    """Counts the question, masked, if it was not known. Raises FeedbackError."""
    asked = gist(result.query) if result.verdict == "unknown" else None
    if asked is not None:
        feedback.note_miss(asked, feedback.person(who))


def address_of(client: str) -> str:
    """Who asks from an address, for `Feedback.person`. Of IPv6 the network, of which one machine has all addresses."""
    try:
        address = ipaddress.ip_address(client.partition("%")[0])
    except ValueError:
        return f"address {client[:100]}"
    if address.version == 6 and address.ipv4_mapped is None:
        address = ipaddress.ip_network((int(address), 64), strict=False).network_address
    return f"address {getattr(address, 'ipv4_mapped', None) or address}"


def this_user() -> str:
    """Who asks at a terminal of this machine, for `Feedback.person`."""
    return f"user {os.getuid()}" if hasattr(os, "getuid") else f"user {os.environ.get('USERNAME', '')}"


def _home(base: AnyBase, issue: str) -> tuple[str, str]:
    """The name of the base that has the issue, and the issue as it is written there."""
    wanted = issue.strip().casefold()
    for one in getattr(base, "local", None) or [base]:
        if found := one.issue(wanted):
            return one.name, found[0].issue
    for remote in getattr(base, "remote", ()):
        if records := remote.show(wanted):
            return remote.name, records[0].issue
    near = base.near(issue, cutoff=0.5)
    hint = f"did you mean {', '.join(near)}?" if near else "`kb search` finds ids: slug#n"
    raise IndexMissing(f"there is no issue {issue!r} in this base", hint=hint)
