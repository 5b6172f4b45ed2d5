"""A base in Milvus, opened: what its alias names at that moment, and no other snapshot afterwards.

The header (what each row is, the terms) is downloaded once for each snapshot into the user's cache, found whole by its
sha256 and mapped from there; a later opening reads the manifest and counts the rows. Everything else is asked of the
engine: the nearest by vector and by terms, within the filter; vectors, term weights, profiles and records by row.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kb.arrays import Array
from kb.errors import BaseUnreachable, IndexCorrupt, IndexMissing
from kb.index.header import LANGS, Columns, Filter, Header, Rows, Vocabulary
from kb.index.milvus import layout
from kb.index.milvus.address import read_address
from kb.index.milvus.engine import Engine
from kb.index.milvus.kept import header_files
from kb.index.milvus.words import Words
from kb.index.profile import Profile, unpack
from kb.index.rank import rank
from kb.index.store import Views
from kb.records import IssueRecord, Ranking

if TYPE_CHECKING:
    from kb.index.prints import Prints

__all__ = ["MilvusStore"]

_DEEPEST = 16_384  # the engine's own limit of one answer
_AT_ONCE = 256  # rows that are asked for together
_MOST_KEPT = 4096  # rows, some 6 kB each, of which terms and views are kept: a question asks for them several times


class MilvusStore:
    """Safe to share between threads, not with forked processes."""

    header: Header

    def __init__(self, address: str, token: str = "", *, engine: Engine | None = None) -> None:
        """`engine`: a connection to this address that is already there. Raises BaseUnreachable, IndexMissing,
        IndexCorrupt, ExtraMissing."""
        self.engine: Engine = engine or Engine(read_address(address), token)
        try:
            self._open()
        except BaseException:
            if engine is None:
                self.engine.close()
            raise

    def _open(self) -> None:
        engine = self.engine
        base = engine.address.base
        records = engine.collection_of(base)
        if records is None:
            raise IndexMissing(
                f"there is no base {base!r} in this Milvus",
                path=engine.address.text,
                hint="kb build --store ADDRESS publishes one",
            )
        if not (layout.names_of(base, [records]) and layout.is_ours(engine, records)):
            raise self._corrupt(f"{base!r} names the collection {records!r}, which is not kb's")
        self.collection: str = records
        """what the alias named when this was opened"""
        try:
            noted = layout.manifest_of(engine, records)
            self._open_noted(noted)
        except (KeyError, ValueError, TypeError, IndexError, AttributeError) as error:
            raise self._corrupt(f"{records}: {error}") from None

    def _open_noted(self, noted: Mapping[str, Any]) -> None:
        manifest = noted["index"]
        self._views = str(noted["views"])
        self._dim = int(manifest["encoder"]["dim"])
        self._depth = 256 if noted["rows"]["views"] > layout.EXACT_UP_TO else 0
        files = header_files(self.engine, self.collection, noted["header"])
        numbers = ["rows", *(f"rows.{n}" for n in range(1, len(manifest["segments"])))]
        parts = [files[name] for name in numbers]
        none = np.zeros((0, 2), np.int64)
        columns = Columns(
            [Rows(part) for part in parts],
            files.get("dead", {}).get("rows", none[:, 0]),
            files.get("same", {}).get("rows", none),
        )
        self._digests = {key: [part[key] for part in parts] for key in ("digests", "profile_digests")}
        sound = (
            all(
                len(one) == part.size
                for ones in self._digests.values()
                for one, part in zip(ones, columns.parts, strict=True)
            )
            and manifest["counts"]["records"] == len(columns.rows())
            and isinstance(manifest["encoder"]["name"], str)
            and all(isinstance(name, str) for name in manifest["projects"])
        )
        if not sound:
            raise ValueError("its parts do not belong together")
        self.header = Header(dict(manifest), str(noted["snapshot"]), columns, Vocabulary([Words(files["words"])]))
        self._kept: dict[int, _Row] = {}

    def _corrupt(self, message: str) -> IndexCorrupt:
        address = self.engine.address.text
        return IndexCorrupt(message, path=address, hint="kb build --store ADDRESS publishes it anew")

    def again(self) -> MilvusStore:
        """What the alias names now, over the same connection."""
        return MilvusStore(self.engine.address.text, engine=self.engine)

    def named_now(self) -> str | None:
        """What the alias names now; changes with every publication. None when the engine does not say."""
        try:
            return self.engine.collection_of(self.engine.address.base)
        except BaseUnreachable:
            return None

    def close(self) -> None:
        self.engine.close()

    def near(
        self, vector: Array, terms: Sequence[str], k: int, within: Filter | None = None
    ) -> tuple[Ranking, Ranking]:
        return self.dense(vector, k, within), self.lexical(terms, k, within)

    def dense(self, vector: Array, k: int, within: Filter | None = None) -> Ranking:
        if not (np.any(vector) and np.isfinite(vector).all()):
            return Ranking((), ())
        query = np.asarray(vector, np.float32).tolist()
        return self._best(self._views, "vector", query, k, within, 4 * k)

    def lexical(self, terms: Sequence[str], k: int, within: Filter | None = None) -> Ranking:
        counts = Counter(self._number(terms))
        asked = {number + 1: float(count) for number, count in counts.items() if number >= 0}
        return self._best(self.collection, "terms", asked, k, within, k + 16) if asked else Ranking((), ())

    def _number(self, terms: Sequence[str]) -> list[int]:
        return [fact.numbers[0] for fact in self.header.vocabulary.facts(terms)]

    def _best(self, collection: str, field: str, query: Any, k: int, within: Filter | None, wanted: int) -> Ranking:
        """The k best records: asks for more until none that was not named can be among them."""
        passing = self._passing(within)
        if k <= 0 or passing is None:
            return Ranking((), ())
        while True:
            depth = min(wanted, _DEEPEST)
            params = {"ef": max(2 * depth, self._depth)} if self._depth and field == "vector" else {}
            found = self.engine.nearest(collection, field, query, depth, passing, params)
            best: dict[int, float] = {}
            for row, score in found:
                best[row] = max(score, best.get(row, 0.0))
            ranking = rank(np.array(list(best.values()), np.float32), k, np.array(list(best), np.int64))
            unseen = found[-1][1] if len(found) == depth else 0.0
            if unseen <= 0 or depth == _DEEPEST or (len(ranking.rows) == k and ranking.scores[-1] > unseen):
                return ranking
            wanted *= 4

    def _passing(self, within: Filter | None) -> str | None:
        """The filter as the engine takes it; None when nothing passes. Only numbers get into it."""
        said: list[str] = []
        if within is not None and within.lang is not None:
            said.append(f"lang == {LANGS.index(within.lang)}")
        if within is not None and within.project is not None:
            number = self._subjects.get(within.project.casefold())
            if number is None:
                return None
            said.append(f"array_contains(subjects, {number})")
        return " and ".join(said)

    @cached_property
    def _subjects(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.header.columns.subjects())}

    def views(self, rows: Array) -> Views:
        found = self._rows(np.asarray(rows).tolist())
        counts = [len(one.kinds) for one in found]
        return Views(
            np.concatenate([np.zeros((0, self._dim), np.float32), *(one.vectors for one in found)]),
            np.repeat(np.asarray(rows, np.int32), counts),
            np.concatenate([np.zeros(0, np.int32), *(one.kinds for one in found)]),
        )

    def weights(self, terms: Sequence[str], rows: Array) -> Array:
        numbers = self._number(terms)
        found = np.zeros((len(rows), len(terms)), np.float32)
        for into, one in zip(found, self._rows(np.asarray(rows).tolist()), strict=True):
            into[:] = [one.weights.get(number + 1, 0.0) if number >= 0 else 0.0 for number in numbers]
        return found

    def _rows(self, rows: Sequence[int]) -> list[_Row]:
        kept = self._kept
        missing = sorted({row for row in rows if row not in kept})
        if missing:
            new = dict(self._ask(missing, ("terms", "views"), self._row))
            if len(kept) + len(new) > _MOST_KEPT:
                kept = {row: kept[row] for row in rows if row in kept}
                self._kept = kept
            kept.update(new)
        return [kept[row] for row in rows]

    def _row(self, _: int, found: Mapping[str, Any]) -> _Row:
        vectors, kinds = layout.unpack_views(found["views"], self._dim)
        return _Row({int(number): float(weight) for number, weight in found["terms"].items()}, vectors, kinds)

    def profiles(self, rows: Sequence[int]) -> list[Profile]:
        found = dict(self._ask(rows, ("profile",), self._part("profile", "profile_digests")))
        return [unpack(found[row], f"profile {row}") for row in rows]

    def records(self, rows: Sequence[int]) -> list[IssueRecord]:
        found = dict(self._ask(rows, ("record",), self._part("record", "digests")))
        try:
            return [IssueRecord.from_dict(json.loads(found[row])) for row in rows]
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise self._corrupt(f"holds no record ({error!r})") from None

    def prints(self) -> list[tuple[int, Prints]]:
        """Made of all records: the engine keeps none."""
        from kb.index.prints import prints_of_records

        columns = self.header.columns
        records: list[IssueRecord | None] = [None] * columns.size
        rows = columns.rows().tolist()
        for row, record in zip(rows, self.records(rows), strict=True):
            records[row] = record
        return [(0, prints_of_records(records))]

    def _part(self, field: str, digests: str) -> Callable[[int, Mapping[str, Any]], bytes]:
        def read(row: int, found: Mapping[str, Any]) -> bytes:
            data = layout.unpack(found[field])
            at, own = self.header.columns.place(row)
            if hashlib.sha256(data).digest()[:8] != self._digests[digests][at][own].tobytes():
                raise ValueError("another one than was published")
            return data

        return read

    def _ask(
        self, rows: Sequence[int], fields: Sequence[str], read: Callable[[int, Mapping[str, Any]], Any]
    ) -> list[tuple[int, Any]]:
        """Of each row what `read` makes of its fields."""
        answers: list[tuple[int, Any]] = []
        wanted = list(dict.fromkeys(rows))
        for first in range(0, len(wanted), _AT_ONCE):
            asked = wanted[first : first + _AT_ONCE]
            found = self.engine.rows(self.collection, asked, fields)
            for row in asked:
                try:
                    answers.append((row, read(row, found[row])))
                except KeyError:
                    raise self._corrupt(f"record {row} has gone") from None
                except (ValueError, TypeError, AttributeError) as error:
                    raise self._corrupt(f"record {row} is damaged ({error})") from None
        return answers


class _Row(NamedTuple):
    """What is compared of a record."""

    weights: Mapping[int, float]
    """number of a term + 1 -> its BM25 weight"""
    vectors: Array
    """(v, dim) float32"""
    kinds: Array
    """(v,) int32"""
