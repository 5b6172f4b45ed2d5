"""Messages that any program may print: they say what failed, and nothing about whose failure it is.

The operating system words them (`Address already in use`, `Illegal instruction`), name resolution, TLS, HTTP, and
Python for its built-in exceptions. That an issue has such words is little evidence that it is meant: any other program
prints them as well.
"""

from __future__ import annotations

import builtins
import errno
import os
import re
import signal
from collections.abc import Iterable
from functools import cache
from http import HTTPStatus

from kb.logs.words import words_of

__all__ = ["own_words", "system_messages"]

# What name resolution, TLS and the clients of HTTP say; Kubernetes of any container; Python's library of any command.
_OF_LIBRARIES = """
name or service not known, temporary failure in name resolution, nodename nor servname provided
ssl certificate verify failed, certificate verify failed, ssl certificate problem, ssl c, certificate has expired
self signed certificate in certificate chain, self signed certificate, certificate signed by unknown authority
unable to get local issuer certificate, unable to get issuer certificate, unable to verify the first certificate
tls handshake timeout, connection closed by remote host, connection closed by peer, connection closed by remote
remote end closed connection without response, connection aborted, max retries exceeded with url, read timed out
sslerror, sslcertverificationerror, httperror, maxretryerror, gaierror, jsondecodeerror
oomkilled, crashloopbackoff, imagepullbackoff, errimagepull, back off restarting failed container
subprocess calledprocesserror command, calledprocesserror, returned non zero exit status
"""


@cache
def system_messages() -> re.Pattern[str]:
    """Finds in what `words_of` returns the messages of the operating system."""
    return _any_of(_of_the_system())


@cache
def _everyones() -> re.Pattern[str]:
    exceptions = {name for name, value in vars(builtins).items() if _is_exception(value)}
    names = {*errno.errorcode.values(), *(one.name for one in signal.Signals)}
    phrases = {f"{one.value} {one.phrase}" for one in HTTPStatus if one >= HTTPStatus.BAD_REQUEST}
    return _any_of({*_of_the_system(), *re.split(", |\n", _OF_LIBRARIES), *exceptions, *names, *phrases})


def _of_the_system() -> set[str]:
    errors = {os.strerror(number) for number in errno.errorcode}
    signals = {signal.strsignal(number) or "" for number in signal.valid_signals() if number < 32}
    return errors | signals | {"errno", "core dumped", "broken pipe"}


def _is_exception(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


def _any_of(messages: Iterable[str]) -> re.Pattern[str]:
    words = {words_of(one).strip() for one in messages} - {""}
    return re.compile(f"(?<= )(?:{'|'.join(map(re.escape, sorted(words, key=len, reverse=True)))})(?= )")


def own_words(text: str) -> frozenset[str]:
    """The words of a text that are in no message of everyone's."""
    return frozenset(_everyones().sub("", words_of(text)).split())
