"""The connection to Milvus. Every question has a limit of time, and whatever goes wrong is a `BaseUnreachable` that
says what, where and what next.

Left to itself pymilvus tries a call 75 times, prints a traceback for each that failed, and reads a `.env` file at or
above its own folder into the environment of the process; here it does none of that.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kb.errors import BaseUnreachable, ExtraMissing
from kb.index.milvus.address import Address
from kb.text import visible_line

__all__ = ["ASK_S", "Engine"]

ASK_S = 10.0
"""how long an answer is waited for"""

_AWAY_S = 5.0  # an engine that did not answer is left alone so long: questions must not pile up before it
_TRIES = 5

_AWAY = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "Fail connecting", "Retry timeout", "failed to connect", "channel is")
_REFUSED = ("auth", "unauthenticated", "permission", "privilege", "PERMISSION_DENIED")


def _pymilvus() -> Any:
    """The package; its own messages are silent, for what they say is raised here."""
    import logging

    before = os.environ.get("PYTHON_DOTENV_DISABLED")
    os.environ["PYTHON_DOTENV_DISABLED"] = "1"
    try:
        import pymilvus
    except ModuleNotFoundError:
        raise ExtraMissing(
            "a base in Milvus needs the extra `milvus`", hint='pip install "kb-issues[milvus]"'
        ) from None
    finally:
        if before is None:
            del os.environ["PYTHON_DOTENV_DISABLED"]
        else:
            os.environ["PYTHON_DOTENV_DISABLED"] = before
    for name in ("pymilvus", "milvus_lite"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return pymilvus


class _NotLoaded(BaseUnreachable):
    pass


class Engine:
    """Safe to share between threads, not with forked processes."""

    def __init__(self, address: Address, token: str = "") -> None:
        """Raises BaseUnreachable, ExtraMissing."""
        self.address: Address = address
        self._token = token
        self._milvus = _pymilvus()
        self._client: Any = None
        self._away_until = 0.0
        if address.is_file:
            self._require_lite()
        with self._telling():
            self._client = self._milvus.MilvusClient(
                uri=address.uri, token=token, db_name=address.database, timeout=ASK_S
            )

    def _require_lite(self) -> None:
        try:
            import milvus_lite  # noqa: F401
        except ModuleNotFoundError:
            raise ExtraMissing(
                "a file of Milvus Lite needs the package milvus-lite", hint="pip install milvus-lite"
            ) from None
        folder = os.path.dirname(self.address.uri)
        if not os.path.isdir(folder):
            raise BaseUnreachable("there is no such folder", path=folder, hint="make it, or name another file")

    def close(self) -> None:
        with suppress(Exception):  # it is over anyway
            self._client.close()

    def failed(self, message: str, hint: str | None = None) -> BaseUnreachable:
        return BaseUnreachable(message, path=self.address.text, hint=hint)

    def _away(self) -> BaseUnreachable:
        if self.address.is_file:
            hint = "another process may have it open: one at a time can; `milvus-lite server` serves several"
            return self.failed("this file of Milvus Lite cannot be opened", hint)
        return self.failed("Milvus does not answer", "is it running, and is this its address?")

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except (BaseUnreachable, ExtraMissing):
            raise
        except Exception as error:  # pymilvus raises its own, those of grpc, and plain ones
            said = f"{getattr(error, 'message', '') or error}"
            if any(word in said or word in str(getattr(error, "code", "")) for word in _AWAY):
                self._away_until = time.monotonic() + _AWAY_S
                raise self._away() from None
            if any(word in said.lower() for word in _REFUSED):
                raise self.failed(
                    "Milvus refuses the token", "$KB_STORE_TOKEN or a file ($KB_STORE_TOKEN_FILE, token-file)"
                ) from None
            if self.address.is_file and self._client is None:
                raise self._away() from None
            if "released" in said or "not loaded" in said:
                raise _NotLoaded("a collection is not loaded", path=self.address.text) from None
            if "collection" in said and ("not found" in said or "not exist" in said):
                hint = "a newer one may have been published meanwhile: ask again"
                raise self.failed("this snapshot is not there any more", hint) from None
            shown = visible_line(said.replace(self._token, "...") if self._token else said)[:300]
            raise self.failed(f"Milvus says: {shown or type(error).__name__}") from None

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """A method of `pymilvus.MilvusClient`, answered in `ASK_S`. Raises BaseUnreachable."""
        if time.monotonic() < self._away_until:
            raise self._away()
        with self._telling():
            return getattr(self._client, name)(*args, timeout=ASK_S, **options)

    def read(self, name: str, collection: str, **options: Any) -> Any:
        """The same for what needs a loaded collection. One that is not is loaded first: Milvus Lite forgets at its end
        what was."""
        try:
            return self.call(name, collection, **options)
        except _NotLoaded:
            self.work("load_collection", collection)
            return self.call(name, collection, **options)

    def work(self, name: str, *args: Any, **options: Any) -> Any:
        """The same for what may take long: waits as long as the engine is there."""
        with self._telling():  # with a limit of time pymilvus would try a dead engine again until then
            return getattr(self._client, name)(*args, timeout=None, retry_times=_TRIES, **options)

    # what kb asks

    def aliases(self, collection: str) -> list[str]:
        return list(self.call("list_aliases", collection_name=collection)["aliases"])

    def collections(self) -> list[str]:
        return list(self.call("list_collections"))

    def collection_of(self, alias: str) -> str | None:
        """What the alias names. Every engine words the error for none differently, so the collections are asked."""
        try:
            return str(self.call("describe_alias", alias=alias)["collection_name"])
        except BaseUnreachable as error:
            for name in self.collections():  # raises when the engine is away
                if alias in self.aliases(name):
                    raise error
            return None

    def fields(self, collection: str) -> set[str]:
        return {field["name"] for field in self.call("describe_collection", collection)["fields"]}

    def count(self, collection: str, *, strong: bool = False) -> int:
        """Rows that a reader finds."""
        options: dict[str, Any] = {"consistency_level": "Strong"} if strong else {}
        found = self.read("query", collection, filter="", output_fields=["count(*)"], **options)
        return int(found[0]["count(*)"])

    def rows(self, collection: str, numbers: Sequence[int], fields: Sequence[str]) -> dict[int, Mapping[str, Any]]:
        """By number; those that are there."""
        which = f"row in {[*map(int, numbers)]}"
        found = self.read("query", collection, filter=which, output_fields=["row", *fields], limit=len(numbers))
        return {int(one["row"]): one for one in found}

    def nearest(
        self, collection: str, field: str, query: Any, depth: int, within: str, params: Mapping[str, Any]
    ) -> list[tuple[int, float]]:
        """Rows and inner products of the `depth` nearest, best first; a row may come several times."""
        found = self.read(
            "search",
            collection,
            data=[query],
            anns_field=field,
            limit=depth,
            filter=within,
            output_fields=["row"],
            search_params={"metric_type": "IP", "params": dict(params)},
        )
        return [(int(hit["entity"]["row"]), float(hit["distance"])) for hit in found[0]]

    @property
    def types(self) -> Any:
        """`pymilvus.DataType`."""
        return self._milvus.DataType

    def schema(self) -> Any:
        return self._milvus.MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)

    def index_params(self) -> Any:
        return self._milvus.MilvusClient.prepare_index_params()
