"""Addresses of bases in Milvus, and the token that an address needs.

    milvus://host:19530/base              a server
    milvus+tls://host:19530/base          the same, encrypted
    milvus://host:19530/database/base     in a database of its own
    milvus:///folder/team.db/base         a file of Milvus Lite, for trying out and tests

Everybody sees addresses: in the list of processes, in kb.toml, in messages. So none holds a password. The token, an API
key or `user:password`, comes from a file or the environment, and goes to no address but its own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kb.errors import BaseUnreachable, QueryError

__all__ = ["ADDRESS_HINT", "Address", "read_address", "token_for", "wrong_address"]

ADDRESS_HINT = "milvus://host:19530/base; a token stands in $KB_STORE_TOKEN or a file ($KB_STORE_TOKEN_FILE)"
_NAME = "[A-Za-z_][A-Za-z0-9_]{0,99}"
_SERVER = re.compile(
    r"milvus(?P<tls>\+tls)?://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
    rf"(?:/(?P<database>{_NAME}))?/(?P<base>{_NAME})"
)
_FILE = re.compile(rf"milvus://(?P<file>/[^\0?#]+\.db)/(?P<base>{_NAME})")
_MAX_TOKEN = 4096


@dataclass(frozen=True, slots=True)
class Address:
    text: str
    """as it was written"""
    uri: str
    """as pymilvus takes it: http://host:port, https://host:port, or the path of a file"""
    base: str
    """the alias that names the base"""
    database: str = ""

    @property
    def is_file(self) -> bool:
        return not self.uri.startswith(("http://", "https://"))


def wrong_address(text: str) -> str | None:
    """What is wrong with an address. The answer does not repeat it: it may hold a password."""
    if "@" in text and not _FILE.fullmatch(text):
        return "holds a user name or password"
    found = _SERVER.fullmatch(text)
    if found:
        return None if int(found["port"] or 0) <= 65535 else "has no port from 1 to 65535"
    return None if _FILE.fullmatch(text) else "is no address of the form milvus://host:19530/base"


def read_address(text: str) -> Address:
    """Raises QueryError for one that `wrong_address` complains of."""
    if wrong := wrong_address(text):
        raise QueryError(f"the address of the store {wrong}", hint=ADDRESS_HINT)
    if found := _SERVER.fullmatch(text):
        scheme = "https" if found["tls"] else "http"
        uri = f"{scheme}://{found['host']}:{found['port'] or 19530}"
        return Address(text, uri, found["base"], found["database"] or "")
    found = _FILE.fullmatch(text)
    assert found
    file = found["file"]
    return Address(text, file[1:] if re.match(r"/[A-Za-z]:/", file) else file, found["base"])


def token_for(file: Path | None = None) -> str:
    """The token in this file; without one, that of the environment, which is for an address that was given outright.
    Empty: none. Raises BaseUnreachable."""
    if file is None and (named := os.environ.get("KB_STORE_TOKEN_FILE")):
        file = Path(named)
    try:
        token = os.environ.get("KB_STORE_TOKEN", "") if file is None else _read(file)
    except (OSError, ValueError):
        raise BaseUnreachable("this token cannot be read", path=file) from None
    if not (token.isascii() and token.isprintable()) or " " in token:
        raise BaseUnreachable("this is no token", path=file or "$KB_STORE_TOKEN")
    return token


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        return opened.read(_MAX_TOKEN).decode("ascii").strip()
