"""Does a question say anything of an issue's own?

`Too many open files` stands in one article, and every program may print it. So an issue is known only where the question
repeats something that is not everyone's (`kb.logs.everyones`): enough information, an identifier that the issue has, or
the name of a project or tag. Else it is likely at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from kb.index.profile import FRONT, digests
from kb.logs.everyones import own_words, words_of
from kb.search.evidence import Question, Subject

__all__ = ["SAYS_ENOUGH", "SYSTEM", "says_its_own"]

SAYS_ENOUGH = 2.5
"""what a question must repeat to identify a failure by that alone; a term that no issue has says 1. With 2 three more
everyday failures of strangers were taken for known ones, with 3 six known ones more were only likely"""

SYSTEM = "linux"
"""the project whose own words the messages of the system are"""

_WORD = re.compile(r"\b[A-Za-z]\w{2,80}\b")
_IDENTIFIER = re.compile(r"[a-z][A-Z]|\w_|[A-Za-z]\d")  # num_generations, iJIT_NotifyEvent, bf16
_MOST_WORDS = 2000


def says_its_own(question: Question, subject: Subject, names: Iterable[Set[str]], about: Sequence[Set[str]]) -> bool:
    """`names`: the terms of the name of each project of the base, which count where the issue says them in its front;
    `about`: those of the issue's projects and tags."""
    query = question.query
    text = "\n".join((*query.signatures, query.prose))
    own = frozenset(words_of(text).split()) if {SYSTEM} in about else own_words(text)
    said = {term for term in question.terms if own.issuperset(words_of(term).split())}
    if any(name <= said for name in about if name):
        return True
    front = {*subject.digests[(subject.fields & int(FRONT)) > 0].tolist()}
    each = zip(question.terms, question.digests.tolist(), question.information.tolist(), strict=True)
    shared = {term: says for term, digest, says in each if term in said and digest in front}
    if sum(shared.values()) >= SAYS_ENOUGH or any(name <= shared.keys() for name in names if name):
        return True
    words = dict.fromkeys(_WORD.findall(text)[:_MOST_WORDS])
    identifiers = [
        word.lower() for word in words if _IDENTIFIER.search(word) and own.issuperset(words_of(word).split())
    ]
    return not front.isdisjoint(digests(identifiers).tolist())
