"""Who has shown the token: `Authorization: Bearer` from programs, a cookie from the page.

POST /api/session takes the token once and sets the cookie, so that a link opens in a new tab and no script of the page
ever holds the token. The cookie is HttpOnly and SameSite=Strict. It does not hold the token: it says until when it is
good, signed with a key that is derived from the token. So every worker knows it, it survives a restart, and another
token ends all sessions. The derivation is slow on purpose: who steals a cookie cannot quickly try tokens against it.

A browser sends the cookie by itself, so a request that changes something must also show that our own page sent it.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterable
from functools import cached_property

from kb.serve.asgi import Refusal, Scope, only
from kb.serve.attempts import Attempts

__all__ = ["COOKIE_S", "PATH", "WANTS_TOKEN", "Gate"]

PATH = "/api/session"
WANTS_TOKEN = re.compile(r"/(?:api|issue|mcp|metrics)(?:/|\Z)")
"""paths that tell something about the base or take something; the page itself holds nothing of it"""
COOKIE_S = 30 * 24 * 3600
_ROUNDS = 200_000  # of PBKDF2, once in a server's life: about 0.1 s
_READS = ("GET", "HEAD", "OPTIONS")


class Gate:
    """Lets requests through that have shown the token; without a token, all."""

    def __init__(self, token: str | None) -> None:
        self._token = token
        self._attempts = Attempts()

    @property
    def is_open(self) -> bool:
        return self._token is None

    def check(self, scope: Scope) -> None:
        """Raises Refusal: 401 without token or cookie, 403 for a change that no page of ours sent, 429 after too many
        wrong tokens."""
        path: str = scope["path"]
        if self._token is None or path == PATH or not WANTS_TOKEN.match(path):
            return
        kind, _, given = (only(scope["headers"], b"authorization") or "").partition(" ")
        if kind.casefold() == "bearer" and given.strip():
            self.show(scope, given.strip())
        elif not self._has_cookie(scope):
            raise _to_page(scope) if path.startswith("/issue/") else _wanted()
        elif scope["method"] not in _READS and not _is_from_page(scope):
            raise Refusal(403, "with the cookie, only kb's own page may change something", "programs send the token")

    def show(self, scope: Scope, given: str) -> None:
        """The client shows a token. Raises Refusal where it is wrong, or looked at no more for now."""
        address = (scope.get("client") or ("", 0))[0]
        wait = self._attempts.wait_s(address)
        if wait:
            raise Refusal(
                429, "too many wrong tokens from this address", f"wait {wait} s", [("retry-after", str(wait))]
            )
        if not hmac.compare_digest(given.encode("utf-8"), (self._token or "").encode("utf-8")):
            self._attempts.note_wrong(address, given)
            raise _wanted()

    def cookie(self, scope: Scope) -> str:
        """The header that starts a session."""
        until = str(int(time.time()) + COOKIE_S)
        return self._set_cookie(scope, f"{until}.{self._signed(until)}", COOKIE_S)

    def no_cookie(self, scope: Scope) -> str:
        """The header by which the browser forgets it."""
        return self._set_cookie(scope, "", 0)

    def _set_cookie(self, scope: Scope, value: str, seconds: int) -> str:
        # The page's own origin, which was checked, tells of TLS also where a proxy says nothing.
        safe = scope.get("scheme") == "https" or (only(scope["headers"], b"origin") or "").startswith("https://")
        text = f"{self._name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict"
        return text + ("; Secure" if safe else "")

    def _has_cookie(self, scope: Scope) -> bool:
        return any(self._is_good(value) for value in _values(scope, self._name))

    def _is_good(self, value: str) -> bool:
        until, _, signature = value.partition(".")
        if not (until.isascii() and until.isdecimal() and len(until) <= 12):
            return False
        same = hmac.compare_digest(signature.encode("utf-8"), self._signed(until).encode("utf-8"))
        return same and time.time() < int(until)

    def _signed(self, until: str) -> str:
        return hmac.new(self._key, until.encode(), hashlib.sha256).hexdigest()

    @cached_property
    def _key(self) -> bytes:
        return hashlib.pbkdf2_hmac("sha256", (self._token or "").encode("utf-8"), b"kb session", _ROUNDS)

    @cached_property
    def _name(self) -> str:
        """Browsers keep cookies by host, not by port: two servers on one host must not overwrite each other's."""
        return "kb_" + hmac.new(self._key, b"name", hashlib.sha256).hexdigest()[:8]


def _wanted() -> Refusal:
    headers = [("www-authenticate", 'Bearer realm="kb"')]
    return Refusal(401, "a token is needed", "send it as `Authorization: Bearer TOKEN`", headers)


def _to_page(scope: Scope) -> Refusal:
    """A browser that follows a link from another site does not send the cookie (SameSite=Strict). The page, which
    needs no token, opens the same issue: its own requests have the cookie, or it asks for the token."""
    path = bytes(scope.get("raw_path") or b"").partition(b"?")[0].decode("latin-1")
    up = "../" * (path.count("/") - 1)  # relative: a proxy may serve kb below a folder
    return Refusal(303, "a token is needed", "the page asks for it", [("location", f"{up}#{path}")])


def _is_from_page(scope: Scope) -> bool:
    """`guards` has refused another Origin or Sec-Fetch-Site by now; here one of them must be there."""
    headers = scope["headers"]
    return only(headers, b"origin") is not None or only(headers, b"sec-fetch-site") == "same-origin"


def _values(scope: Scope, name: str) -> Iterable[str]:
    for key, line in scope["headers"]:
        if key == b"cookie":
            for pair in line.decode("latin-1").split(";"):
                key_, _, value = pair.strip().partition("=")
                if key_ == name:
                    yield value
