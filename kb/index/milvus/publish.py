"""Publishes an index folder in Milvus, so that readers see all of it or none.

The records that count go into new collections, in batches; these are flushed, indexed and loaded, and every row is
counted as a reader would count it. Only then the alias is switched, which is one step of the engine. What no alias
names is dropped afterwards, also what a publisher that was killed left behind. One publisher of a base at a time: a
second one would take the rows of the first for such leavings, and the first would end with an error.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kb.errors import BaseUnreachable
from kb.index.faiss import FaissStore
from kb.index.milvus import layout
from kb.index.milvus.address import read_address
from kb.index.milvus.engine import Engine
from kb.index.milvus.layout import Names
from kb.index.milvus.rows import Row, Source, kept

__all__ = ["Progress", "Published", "publish"]

GRACE_S = 5.0
"""how long readers of the last snapshot have before it is dropped; a server looks once a second"""

_BATCH_ROWS, _BATCH_BYTES = 1000, 4 << 20
_STALLED_S = 900.0  # in which not one row more was indexed or could be seen

Progress = Callable[[str, int, int], None]
"""stage ("publish" or "index"), how many are done, of how many"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Published:
    snapshot: str
    collection: str
    """what the alias names now"""
    rows: int
    """of records and views that were sent; 0: this snapshot was there already"""
    dropped: int
    """collections that nobody needed any more"""
    took_s: float


def publish(index: Path, address: str, token: str = "", *, progress: Progress | None = None) -> Published:
    """Publishes the index in this folder at this address. Raises IndexMissing, IndexCorrupt, BaseUnreachable,
    ExtraMissing; after any error the address answers as before."""
    started = time.perf_counter()
    place = read_address(address)
    store = FaissStore(index)
    try:
        engine = Engine(place, token)
        try:
            found = _publish(engine, store, progress or (lambda *_: None))
        finally:
            engine.close()
    finally:
        store.close()
    return Published(store.header.snapshot, *found, time.perf_counter() - started)


def _publish(engine: Engine, store: FaissStore, progress: Progress) -> tuple[str, int, int]:
    base = engine.address.base
    before = _in_service(engine)
    if before and f"_{store.header.snapshot}_" in before and layout.is_whole(engine, before):
        return before, 0, _sweep(engine, before)
    names = Names.new(base, store.header.snapshot)
    try:
        rows = _fill(engine, names, store, progress)
        if before is None:
            engine.work("create_alias", names.records, base)
        else:
            engine.work("alter_alias", names.records, base)
    except BaseException:
        with suppress(BaseUnreachable):  # what stays is dropped by the next one
            if engine.collection_of(base) != names.records:
                for name in names:
                    engine.call("drop_collection", name)
        raise
    if before:
        time.sleep(GRACE_S)
    return names.records, rows, _sweep(engine, names.records)


def _in_service(engine: Engine) -> str | None:
    """What the alias names now. Raises BaseUnreachable where the name is somebody else's."""
    base = engine.address.base
    hint = "choose another name for the base: milvus://host:19530/NAME"
    if base in engine.collections():
        raise engine.failed(f"there is a collection {base!r}, and it is not kb's", hint)
    before = engine.collection_of(base)
    if before is not None and not (layout.names_of(base, [before]) and layout.is_ours(engine, before)):
        raise engine.failed(f"the alias {base!r} names {before!r}, which is not kb's", hint)
    return before


def _fill(engine: Engine, names: Names, store: FaissStore, progress: Progress) -> int:
    """Makes both collections, ready to be asked. How many rows they have."""
    source = Source(store)
    layout.create(engine, names, source.dim)
    records, views = (_Batches(engine, name) for name in names)
    for done, (record, its_views) in enumerate(source.rows(), 1):
        records.add(record)
        for view in its_views:
            views.add(view)
        if done % 100 == 0 or done == source.size:
            progress("publish", done, source.size)
    files, pieces = source.header()
    for row in pieces:
        records.add(row)
    manifest = {
        "format": layout.FORMAT,
        "snapshot": store.header.snapshot,
        "views": names.views,
        "rows": {"records": records.sent + 1, "views": views.sent},
        "header": files,
        "index": store.header.manifest,
    }
    views.send()
    records.add(kept(layout.MANIFEST_ROW, json.dumps(manifest).encode()))  # the last one: without it nothing counts
    records.send()
    for name, params, sent in zip(names, layout.indexes(engine, views.sent), (records.sent, views.sent), strict=True):
        _ready(engine, name, params, sent, progress)
    return records.sent + views.sent


def _ready(engine: Engine, name: str, params: object, sent: int, progress: Progress) -> None:
    """Flushed, indexed, loaded, in this order: an index that is declared before the rows come may never be built, and
    nothing says so. Returns when a reader finds every row."""
    engine.work("flush", name)
    engine.work("create_index", name, params)

    def indexed() -> tuple[int, int]:
        states = [engine.call("describe_index", name, one) for one in engine.call("list_indexes", name)]
        return min(int(one["indexed_rows"]) for one in states), max(int(one["total_rows"]) for one in states)

    def is_indexed(now: tuple[int, int]) -> bool:
        progress("index", *now)
        return now[0] >= now[1]

    _await(engine, name, indexed, is_indexed)
    engine.work("load_collection", name)
    _await(engine, name, lambda: engine.count(name), lambda now: now >= sent)
    if engine.count(name, strong=True) != sent:
        raise engine.failed(f"{name} holds other rows than were sent", "is somebody else publishing this base?")


def _await(engine: Engine, name: str, look: Callable[[], T], done: Callable[[T], bool]) -> None:
    last, changed_at, pause = look(), time.monotonic(), 0.02
    while not done(last):
        time.sleep(pause)
        pause = min(2 * pause, 1.0)
        now = look()
        if now != last:
            last, changed_at = now, time.monotonic()
        elif time.monotonic() - changed_at > _STALLED_S:
            raise engine.failed(f"{name} is not ready after {_STALLED_S:.0f} s", "what does the log of Milvus say?")


def _sweep(engine: Engine, records: str) -> int:
    """Drops collections of this base that nobody needs. Checks the aliases itself: Milvus Lite would drop one that has
    an alias, together with the alias."""
    named = records.rpartition("_")[0]
    dropped = 0
    for name in layout.names_of(engine.address.base, engine.collections()):
        if name.rpartition("_")[0] == named or engine.aliases(name) or not layout.is_ours(engine, name):
            continue
        with suppress(BaseUnreachable):  # the next one drops it
            engine.call("drop_collection", name)
            dropped += 1
    return dropped


class _Batches:
    """Sends rows to a collection, so many at a time that neither side has to hold all."""

    def __init__(self, engine: Engine, collection: str) -> None:
        self._engine, self._collection = engine, collection
        self._rows: list[Row] = []
        self._bytes = 0
        self.sent: int = 0
        """rows, those that wait included"""

    def add(self, row: Row) -> None:
        self._rows.append(row)
        self.sent += 1
        self._bytes += sum(_bytes_of(value) for value in row.values())
        if len(self._rows) >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self.send()

    def send(self) -> None:
        if self._rows:
            self._engine.work("insert", self._collection, self._rows)
        self._rows, self._bytes = [], 0


def _bytes_of(value: object) -> int:
    """About as many as it takes on the way."""
    if isinstance(value, list):
        return sum(map(len, value)) if value and isinstance(value[0], str) else 4 * len(value)
    return 12 * len(value) if isinstance(value, dict) else int(getattr(value, "nbytes", 8))
