"""Does a question say anything of an issue's own?

`Too many open files` stands in one article, and every program may print it. So an issue is known only where the
question repeats something that is not everyone's (`kb.logs.everyones`): enough information, a long line, an identifier
that the issue has, or the name of a project or tag. Else it is likely at most.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set

from kb.index.profile import FRONT, digests
from kb.logs.everyones import own_words, words_of
from kb.search.evidence import Question, Subject
from kb.search.verdict import NEARLY

__all__ = ["SAYS_ENOUGH", "SYSTEM", "says_its_own"]

SAYS_ENOUGH = 2.5
"""what a question must repeat to identify a failure by that alone; a term that no issue has says 1"""

WORDS_ENOUGH = 7
"""words of a line that an issue prints nearly word by word, by which it is that issue's though each is common: a
message of Python has fewer (`too many values to unpack (expected 2)`)"""

SYSTEM = "linux"
"""the project whose own the messages of everyone are, where its issue has them"""

WHOLE_LINE = 3
"""words, none of them everyone's, of a line that an error line of the issue holds whole: `pop from an empty deque`"""

_WORD = re.compile(r"\b[A-Za-z]\w{2,80}\b")
_IDENTIFIER = re.compile(r"[a-z][A-Z]|\w_|[A-Za-z]\d")  # num_generations, iJIT_NotifyEvent, bf16
_MOST_WORDS = 2000


def says_its_own(
    question: Question,
    subject: Subject,
    names: Iterable[Set[str]],
    about: Sequence[Set[str]],
    lines: Sequence[Set[str]],
    printed: Sequence[Set[str]],
) -> bool:
    """`names`: the terms of the name of each project of the base, which count where the issue says them in its front;
    `about`: those of the issue's projects and tags. `lines`, `printed`: the terms of each line of the question and of
    each error line of the issue."""
    query = question.query
    text = "\n".join((*query.signatures, query.prose))
    own = own_words(text)

    def is_own(term: str) -> bool:
        return own.issuperset(words_of(term).split())

    said = set(filter(is_own, question.terms))
    if any(name <= said for name in about if name):
        return True
    front = {*subject.digests[(subject.fields & int(FRONT)) > 0].tolist()}
    everyones = {term for term in question.terms if own.isdisjoint(words_of(term).split())}
    if {SYSTEM} in about and everyones and front.issuperset(digests(everyones).tolist()):
        return True
    each = zip(question.terms, question.digests.tolist(), question.information.tolist(), strict=True)
    shared = {term: says for term, digest, says in each if term in said and digest in front}
    if sum(shared.values()) >= SAYS_ENOUGH or any(name <= shared.keys() for name in names if name):
        return True
    repeated = [line & said for line in lines]
    if any(len(line & there) >= max(WORDS_ENOUGH, NEARLY * len(line)) for line in repeated for there in printed):
        return True
    if any(len(line) >= WHOLE_LINE and line <= there for line in repeated for there in printed):
        return True
    identifiers = {word.lower() for word in _WORD.findall(text)[:_MOST_WORDS] if _IDENTIFIER.search(word)}
    return not front.isdisjoint(digests(filter(is_own, identifiers)).tolist())
