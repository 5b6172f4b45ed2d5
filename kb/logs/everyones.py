"""Messages that any program may print: they say what failed, and nothing about whose failure it is.

The operating system words them (`Address already in use`, `Illegal instruction`), name resolution, TLS, HTTP, and
Python for its built-in exceptions. That an issue has such words is little evidence that it is meant: any other program
prints them as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from kb.logs.words import words_of

__all__ = [
    "LISTS",
    "is_everyones",
    "only_in_messages",
    "own_words",
    "python_words",
    "type_names",
    "without_system_messages",
]

LISTS: Final = Path(__file__).with_name("everyones.json")
"""What `scripts/everyones.py` found several systems and versions of Python to print, as `words_of` reads it. The host
is not asked: there the same question would get another answer."""

# What name resolution, TLS and the clients of HTTP say; Kubernetes of any container; Python's library of any command;
# asyncio, the C++ runtime, apt.
_OF_LIBRARIES = """
name or service not known, temporary failure in name resolution, nodename nor servname provided
ssl certificate verify failed, certificate verify failed, ssl certificate problem, ssl c, certificate has expired
self signed certificate in certificate chain, self signed certificate, certificate signed by unknown authority
unable to get local issuer certificate, unable to get issuer certificate, unable to verify the first certificate
tls handshake timeout, connection closed by remote host, connection closed by peer, connection closed by remote
remote end closed connection without response, connection aborted, max retries exceeded with url, read timed out
sslerror, sslcertverificationerror, httperror, maxretryerror, gaierror, jsondecodeerror
oomkilled, crashloopbackoff, imagepullbackoff, errimagepull, back off restarting failed container
server disconnected without sending a response, server disconnected, serverdisconnectederror, clientoserror
remoteprotocolerror, no running event loop, terminate called without an active exception
expecting value, expecting property name enclosed in double quotes, unterminated string starting at, extra data
json decoder, requests exceptions, truncated data, illegal multibyte sequence, invalid continuation byte
utf 16 le, utf 16 be, unexpected end of data
the following packages have unmet dependencies, unable to correct problems you have held broken packages
subprocess calledprocesserror command, calledprocesserror, returned non zero exit status
"""
# What glibc and Windows print in Chinese.
_IN_CHINESE = """
浮点数例外, 段错误, 总线错误, 非法指令, 已放弃, 已中止, 核心已转储, 吐核, 已杀死, 断开的管道, 设备上没有空间
磁盘空间不足, 超出磁盘限额, 无法分配内存, 权限不够, 拒绝访问, 不允许的操作, 没有那个文件或目录, 找不到指定的文件
地址已在使用, 拒绝连接, 连接超时, 连接被对方重设, 没有到主机的路由, 未找到命令
不是内部或外部命令 也不是可运行的程序, 或批处理文件, 由于目标计算机积极拒绝 无法连接
另一个程序正在使用此文件 进程无法访问, 项识别为 cmdlet 函数 脚本文件或可运行程序的名称
请检查名称的拼写 如果包括路径 请确保路径正确 然后再试一次
"""
# What servers and clients call the codes of HTTP, and what they shorten.
_OF_SERVERS = """
access denied, connection reset, gateway time out, moved permanently, payload too large, service temporarily unavailable
"""


@cache
def _lists() -> dict[str, list[str]]:
    lists: dict[str, list[str]] = json.loads(LISTS.read_text("utf-8"))
    return lists


class _Messages:
    """Messages to be found in words, the longest first. A search in a fresh process asks for them once, and a pattern
    of all of them would have to be compiled for that."""

    def __init__(self, messages: Iterable[str]) -> None:
        said = {tuple(words_of(one).split()) for one in messages} - {()}
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for words in sorted(said, key=len, reverse=True):
            self._by_first.setdefault(words[0], []).append(words)

    def left_of(self, words: Sequence[str]) -> list[str]:
        """The words that are part of no message."""
        left: list[str] = []
        at, words = 0, tuple(words)
        while at < len(words):
            said = self._by_first.get(words[at], ())
            size = next((len(one) for one in said if words[at : at + len(one)] == one), 0)
            if not size:
                left.append(words[at])
            at += size or 1
        return left


@cache
def _system() -> _Messages:
    return _Messages(_of_the_system())


def without_system_messages(words: Sequence[str]) -> list[str]:
    """Of the words (as `words_of` has them) of a text, those that are part of no message of the operating system."""
    return _system().left_of(words)


@cache
def type_names() -> frozenset[str]:
    """Of Python's built-in types, exceptions among them, in lower case."""
    return frozenset(_lists()["types"])


@cache
def python_words() -> frozenset[str]:
    """The words of the docstrings of Python's built-in functions, which its own error messages use."""
    return frozenset(_lists()["docstrings"])


@cache
def _everyones() -> _Messages:
    return _Messages(
        [*_of_the_system(), *re.split(", |\n", _OF_LIBRARIES + _IN_CHINESE), *_lists()["names"], *_lists()["http"]]
    )


@cache
def _by_word() -> dict[str, list[str]]:
    """The messages of the system but those of one word, which may be a name (`continued`), and what HTTP says of its
    codes, each listed under its words and as `_spaced` writes it. Of `connection reset by peer` the shorter
    `connection reset` is enough."""
    found = {one for one in _of_the_system() if " " in one} | {one.partition(" ")[2] for one in _lists()["http"]}
    spaced = {_spaced(one) for one in (*found, *_OF_SERVERS.split(", "))}
    listed: dict[str, list[str]] = {}
    for one in sorted(spaced):
        if not any(other in one for other in spaced - {one}):
            for word in one.split():
                listed.setdefault(word, []).append(one)
    return listed


def _spaced(text: str) -> str:
    """Its words, each with its own space at either end."""
    return f" {'  '.join(words_of(text).split())} "


def _of_the_system() -> list[str]:
    return [*_lists()["system"], "errno", "core dumped", "broken pipe"]


def own_words(text: str) -> frozenset[str]:
    """The words of a text that are in no message of everyone's."""
    return frozenset(_everyones().left_of(words_of(text).split()))


def only_in_messages(name: str, text: str) -> bool:
    """Does a word of the name stand in the text only as part of messages that any program may print? `Bad Gateway` is
    no product."""
    listed = _by_word()
    words = [word for word in words_of(name).split() if word in listed]
    said = _spaced(text) if words else ""
    return any(0 < said.count(f" {word} ") <= sum(map(said.count, listed[word])) for word in words)


# What differs from one run to the next: where a parser of text stopped, and the byte there.
_PLACE = re.compile(r"\bline \d+,? column \d+|\(char \d+\)|\b0x[0-9a-f]{2}\b")


def is_everyones(line: str) -> bool:
    """Has the line no word but those that the messages of any program have?"""
    words = own_words(_PLACE.sub(" ", line)) - python_words() - type_names()
    return not any(word.isalpha() for word in words)
