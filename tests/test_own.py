"""kb.search.own and kb.logs.everyones: what any program may print is no issue's own."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Write

from kb import KnowledgeBase
from kb.logs.everyones import own_words, system_messages, words_of
from kb.search.verdict import KNOWN_AT

OF_EVERYONE = [
    *(os.strerror(number) for number in (errno.EADDRINUSE, errno.EMFILE, errno.ENOSPC, errno.ECONNREFUSED)),
    "Illegal instruction (core dumped)",
    "Floating point exception",
    "SIGKILL",
    "EADDRINUSE",
    "ConnectionResetError",
    "Bad Gateway",
    "self-signed certificate in certificate chain",
    "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate",
    "OOMKilled",
]


@pytest.mark.parametrize("message", OF_EVERYONE)
def test_a_message_of_everyone_has_no_word_of_its_own(message: str) -> None:
    assert own_words(message) == frozenset()
    assert own_words(f"before {message}: after it") == {"before", "after", "it"}


@pytest.mark.parametrize(
    "line", ["", "nothing common here", "重复的端口", "addresses already used", "ssl_context lost"]
)
def test_other_words_are_left(line: str) -> None:
    assert own_words(line) == frozenset(words_of(line).split())


def test_what_the_system_says_is_less_than_what_everyone_says() -> None:
    for message in OF_EVERYONE:
        rest = system_messages().sub("", words_of(message))
        assert own_words(rest) <= frozenset(rest.split())


ARTICLES = {
    "sockets": ("Gadget", "Address already in use", "The gadget cannot listen.", "[gadget, listening]"),
    "files": ("Linux", "OSError: [Errno 24] Too many open files", "The system's limit is low.", "[limits]"),
    "widget": ("Widget", "flux capacitor of wobbly_rate out of bounds, see the manual", "It wobbles.", "[flux]"),
}


@pytest.fixture
def base(write: Write, tmp_path: Path) -> Iterator[KnowledgeBase]:
    articles = write(
        {
            f"{lang}/{slug}.md": (
                f"---\nproject: {project}\ntags: {tags}\n---\n# {line}\n\n## {line}\n\n"
                f"### Symptom\n\n```\n{line}\n```\n\n"
                f"{symptom}\n\n### Cause\nSomething.\n\n### Fix\n1. Mend it.\n\n### Asked as\n- {line}\n"
            )
            for slug, (project, line, symptom, tags) in ARTICLES.items()
            for lang in ("en", "zh")
        }
    )
    KnowledgeBase.build(articles, tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "issue", "own"),
    [
        ("OSError: [Errno 98] Address already in use", "sockets#1", False),
        ("gadget: Address already in use", "sockets#1", True),
        ("Address already in use while listening", "sockets#1", True),
        ("OSError: [Errno 24] Too many open files", "files#1", True),
        ("OSError: [Errno 9] Bad file descriptor", "files#1", False),
        ("ValueError: flux out of bounds", "widget#1", True),
        ("ValueError: out of bounds", "widget#1", False),
        ("ValueError: wobbly_rate out of bounds", "widget#1", True),
    ],
)
def test_only_what_is_its_own_makes_an_issue_known(
    question: str, issue: str, own: bool, base: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However near it is."""
    from kb.search import searcher

    monkeypatch.setattr(searcher, "confidence", lambda found, curve: 0.99)
    found = {hit.issue: hit.confidence for hit in base.search(question, 3).hits}
    assert (found[issue] >= KNOWN_AT) == own
