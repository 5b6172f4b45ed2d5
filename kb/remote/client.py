"""A base that another `kb serve` has: asked over HTTP, in limited time.

It is one voice among several, so it must never hold up the others: a question waits for `seconds` at most, a server
that did not answer is left alone for a while, and what it once answered is kept in the user's cache and shown, with its
age, while it is away. Nothing it sends is trusted: an answer has a known form and a bounded size, or it is refused. Its
token goes to its own address and nowhere else; no redirect is followed. The question itself is sent as it is.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb.config import BaseSettings
from kb.errors import BaseUnreachable
from kb.index.user import cache_folder
from kb.records import IssueRecord, Query, SearchResult, Silence
from kb.remote.form import result, text
from kb.remote.kept import AWAY_S, FRESH_S, MAX_ANSWER, Kept, ago

if TYPE_CHECKING:
    from urllib.error import HTTPError

__all__ = ["RemoteBase"]

MAX_QUESTION: Final = 1 << 20  # characters; of a longer one the first and the last half of that
MAX_TOKEN, MAX_REFUSAL = 4096, 1 << 16


class RemoteBase:
    """One server. Safe to share between threads."""

    bundled: Final = False

    def __init__(self, settings: BaseSettings, *, cache: Path | None = None) -> None:
        """`settings.url` is set. `cache`: the folder for its answers; default: in the user's cache."""
        assert settings.url is not None
        self.name: str = settings.name
        self.where: str = settings.url
        self.seconds: float = settings.seconds
        self._token_file = settings.token_file
        folder = cache or cache_folder() / "answers"
        self.kept: Kept = Kept(folder / hashlib.sha256(self.where.encode()).hexdigest()[:12])

    def ask(self, query: Query, wanted: Mapping[str, object]) -> Asking:
        """Begins to ask, and returns at once. `wanted`: the other parameters of `/api/search`."""
        return Asking(self, query, {key: value for key, value in wanted.items() if value is not None})

    def show(self, issue: str) -> list[IssueRecord]:
        """All translations of `issue` (`slug#n`), none for one that it does not have. Raises BaseUnreachable."""
        from urllib.parse import quote

        slug, _, number = issue.rpartition("#")
        if not slug or not number.isdecimal():
            return []
        answer = _Request(self, f"/api/issues/{quote(slug, safe='')}/{number}").wait()
        with _in_known_form(self):
            return [] if answer is None else [IssueRecord.from_dict(one) for one in answer["translations"]]

    def projects(self) -> list[tuple[str, int]]:
        """Every project with the number of its issues. Raises BaseUnreachable."""
        answer = _Request(self, "/api/projects").wait()
        with _in_known_form(self):
            return [(text(one["project"]), int(one["issues"])) for one in answer or []]

    def health(self) -> dict[str, str]:
        """Its version and its snapshot. Raises BaseUnreachable."""
        answer = _Request(self, "/healthz").wait()
        with _in_known_form(self):
            return {name: text(answer[name]) for name in ("version", "snapshot")}

    def request(self, path: str, body: Mapping[str, object] | None) -> Any:
        """The JSON that the server answers; None for 404. Raises BaseUnreachable."""
        from http.client import HTTPException
        from urllib.error import HTTPError, URLError
        from urllib.request import HTTPRedirectHandler, Request, build_opener

        class NoRedirect(HTTPRedirectHandler):
            """Another address is another base, which the user has not named; the token is not for it."""

            def redirect_request(self, *_: object) -> None:
                return None

        headers = {"Accept": "application/json", "User-Agent": "kb"}
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        try:
            with build_opener(NoRedirect).open(
                Request(self.where + path, data, headers), timeout=self.seconds
            ) as response:
                raw = response.read(MAX_ANSWER + 1)
        except HTTPError as error:
            with contextlib.closing(error):
                if error.code == 404 and path.startswith("/api/issues/"):
                    return None
                raise self._refusal(error) from None
        except (OSError, HTTPException, ValueError) as error:  # a URLError is an OSError with a reason
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, TimeoutError):
                raise self.too_late() from None
            raise self.unreachable(str(getattr(reason, "strerror", None) or reason or type(reason).__name__)) from None
        if len(raw) > MAX_ANSWER:
            raise self.unreachable(f"its answer is larger than {MAX_ANSWER:,} bytes")
        try:
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise self.unreachable("its answer is not JSON; is it a kb serve?") from None

    def too_late(self) -> BaseUnreachable:
        return self.unreachable(f"no answer within {self.seconds:g} s")

    def unreachable(self, why: str) -> BaseUnreachable:
        return BaseUnreachable(why, path=self.where)

    def _refusal(self, error: HTTPError) -> BaseUnreachable:
        """In the server's own words, where it has some."""
        said = f"HTTP {error.code}"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            said = text(json.loads(error.read(MAX_REFUSAL))["error"])[:300]
        hint = "kb.toml names the file with its token: token-file" if error.code == 401 else None
        kind = _Refused if 400 <= error.code < 500 else BaseUnreachable
        return kind(said, path=self.where, hint=hint)

    def _token(self) -> str:
        if self._token_file is None:
            return ""
        try:
            with self._token_file.open("rb") as file:
                token = file.read(MAX_TOKEN).decode("ascii").strip()
        except (OSError, ValueError):
            raise BaseUnreachable("this token cannot be read", path=self._token_file) from None
        if not token.isprintable() or " " in token:
            raise BaseUnreachable("this is no token", path=self._token_file)
        return token


class Asking:
    """One question on its way."""

    def __init__(self, base: RemoteBase, query: Query, wanted: Mapping[str, object]) -> None:
        self._base, self._query = base, query
        half = MAX_QUESTION // 2
        asked = query.text if len(query.text) <= MAX_QUESTION else f"{query.text[:half]}\n{query.text[-half:]}"
        body = {"query": asked, **wanted}
        self._key = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:32]
        self._old = base.kept.read(self._key)
        self._fresh = self._old is not None and self._old[1] <= FRESH_S
        self._request = None if self._fresh or base.kept.away() else _Request(base, "/api/search", body)

    def answer(self) -> tuple[SearchResult | None, Silence | None]:
        """What the server says, as soon as it is here, or what it said earlier; and why there is no answer of now."""
        base, why = self._base, "" if self._fresh else f"it did not answer within the last {AWAY_S:g} s"
        try:
            if self._request is not None:
                form = self._request.wait()
                with _in_known_form(base):
                    answered = result(form, self._query, base.name)
                base.kept.write(self._key, form)
                return answered, None
        except _Refused as error:
            return None, Silence(base.name, error.message)
        except BaseUnreachable as error:
            base.kept.note_away()
            why = error.message
        if self._old is not None:
            form, age = self._old
            with contextlib.suppress(BaseUnreachable), _in_known_form(base):
                earlier = result(form, self._query, base.name)
                told = Silence(base.name, f"{why}; this is its answer of {ago(age)}") if why else None
                return earlier, told
        return None, Silence(base.name, why or "what it answered cannot be read")


class _Request:
    """One request in a thread of its own: a socket's timeout counts from byte to byte, and a server may be slow."""

    def __init__(self, base: RemoteBase, path: str, body: Mapping[str, object] | None = None) -> None:
        self._base = base
        self._until = time.monotonic() + base.seconds
        self._found: list[Any] = []
        self._worker = threading.Thread(target=self._run, args=(path, body), name="kb-remote", daemon=True)
        self._worker.start()

    def _run(self, path: str, body: Mapping[str, object] | None) -> None:
        try:
            self._found.append(self._base.request(path, body))
        except BaseUnreachable as error:
            self._found.append(error)

    def wait(self) -> Any:
        """What the server answers, or BaseUnreachable when it has not by its time."""
        self._worker.join(max(self._until - time.monotonic(), 0))
        if not self._found:
            raise self._base.too_late()
        if isinstance(self._found[0], BaseUnreachable):
            raise self._found[0]
        return self._found[0]


class _Refused(BaseUnreachable):
    """It answers, but not this question: such a server is not away."""


@contextlib.contextmanager
def _in_known_form(base: RemoteBase) -> Iterator[None]:
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise base.unreachable("its answer has another form than kb's; is it an older kb serve?") from None
