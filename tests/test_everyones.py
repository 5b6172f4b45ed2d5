"""kb.logs.everyones: what any program may print is no evidence for an issue."""

from __future__ import annotations

import errno
import os
import re
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.logs.everyones import _Messages, only_in_messages, own_words, without_system_messages
from kb.logs.words import words_of

OF_EVERYONE = [
    *(os.strerror(number) for number in (errno.EADDRINUSE, errno.EMFILE, errno.ENOSPC, errno.ECONNREFUSED)),
    "Illegal instruction (core dumped)",
    "Floating point exception",
    "SIGKILL",
    "EADDRINUSE",
    "ConnectionResetError",
    "502 Bad Gateway",
    "self-signed certificate in certificate chain",
    "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate",
    "OOMKilled",
]


@pytest.mark.parametrize("message", OF_EVERYONE)
def test_a_message_of_everyone_has_no_word_of_its_own(message: str) -> None:
    assert own_words(message) == frozenset()
    assert own_words(f"before {message}: after it") == {"before", "after", "it"}


@pytest.mark.skipif(sys.platform != "linux", reason="the list holds what the C library of Linux says")
def test_all_that_this_system_says_is_in_the_list() -> None:
    said = [os.strerror(number) for number in errno.errorcode]
    said += [signal.strsignal(number) or "" for number in signal.valid_signals() if number < 32]
    said += [*errno.errorcode.values(), *(one.name for one in signal.Signals)]
    assert len(said) > 200
    assert [one for one in said if own_words(one)] == []


@pytest.mark.parametrize(
    "line", ["", "nothing common here", "重复的端口", "addresses already used", "ssl_context lost"]
)
def test_other_words_are_left(line: str) -> None:
    assert own_words(line) == frozenset(words_of(line).split())


def test_what_the_system_says_is_less_than_what_everyone_says() -> None:
    for message in OF_EVERYONE:
        rest = without_system_messages(words_of(message).split())
        assert own_words(" ".join(rest)) <= frozenset(rest)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Bad Gateway", "502 Bad Gateway\nBad Gateway bad gateway"),
        ("Fix Bad", "Fix Bad Gateway"),
        ("Internal Server", "It ends with Internal Server Error."),
        ("Entity Too", "413 Request Entity Too Large"),
        ("payload", "payload too large"),
        ("Forbidden", "403 Forbidden"),
        ("Connection Reset", "Connection Reset by peer"),
    ],
)
def test_a_message_is_no_name(name: str, text: str) -> None:
    assert only_in_messages(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Kong Gateway", "Kong Gateway answers 502 Bad Gateway"),
        ("Gateway", "Gateway: 502 Bad Gateway"),
        ("Processing", "Processing does not start"),
        ("nginx", "nginx: 502 Bad Gateway"),
    ],
)
def test_a_name_beside_a_message_is_one(name: str, text: str) -> None:
    assert not only_in_messages(name, text)


@given(st.lists(st.sampled_from([*" ".join(OF_EVERYONE).split(), "tensor", "connection", "403"]), max_size=12))
def test_messages_are_found_as_by_a_pattern_of_all_of_them(words: list[str]) -> None:
    messages = ["connection reset", "connection reset by peer", "reset by", "403 forbidden", *OF_EVERYONE[:40]]
    either = sorted({words_of(one).strip() for one in messages}, key=len, reverse=True)
    pattern = re.compile(f"(?<= )(?:{'|'.join(map(re.escape, either))})(?= )")
    said = words_of(" ".join(words))
    assert _Messages(messages).left_of(said.split()) == pattern.sub("", said).split()
