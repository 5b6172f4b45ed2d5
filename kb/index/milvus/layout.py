"""What a base is in Milvus: two collections for each snapshot, which one alias names.

    <base>                            alias of the records of the snapshot that is in service
    kb_<base>_<snapshot>_<n>_records  one row for each record:
        row        its number in the index
        lang       its place in `kb.index.header.LANGS`
        subjects   numbers of its project and tags among `Columns.subjects()`
        terms      sparse vector: number of a term + 1 -> its BM25 weight in this record
        record     the record as JSON     profile    see `kb.index.profile`
        views      its vectors as float16, and the kind of each
    kb_<base>_<snapshot>_<n>_views    one row for each view: id, row, lang, subjects, vector

Rows below zero of the records hold what a reader wants at once: -1 the manifest, the others the files that it names,
in pieces. Their sparse vector has only the dimension 0, which no term has. Who switches the alias switches everything:
the manifest names the views.

Bytes are kept as text, for the engine has no field for bytes: deflated, in base64, cut into what a VARCHAR takes.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from kb.arrays import Array
from kb.errors import BaseUnreachable
from kb.index.milvus.engine import Engine

__all__ = [
    "EXACT_UP_TO",
    "FORMAT",
    "MANIFEST_ROW",
    "MOST_SUBJECTS",
    "NOTHING",
    "PIECE",
    "Names",
    "create",
    "indexes",
    "is_ours",
    "is_whole",
    "manifest_of",
    "names_of",
    "pack",
    "pack_views",
    "unpack",
    "unpack_views",
]

FORMAT = 2
MANIFEST_ROW = -1
PIECE = 1 << 21
"""bytes of a file that are kept in one row"""

NOTHING: Mapping[int, float] = {0: 1.0}
"""the sparse vector of a row that no term finds"""

MOST_SUBJECTS = 4096
"""of a record; an engine takes no more in one field"""

EXACT_UP_TO = 200_000
"""views; more are searched by a graph (HNSW), which finds nearly all of the nearest"""

_TEXT = 65_532  # characters; a VARCHAR takes 65,535, and base64 comes in fours
_MOST_TEXTS = 1024

_RECORDS = {"row", "lang", "subjects", "terms", "record", "profile", "views"}
_VIEWS = {"id", "row", "lang", "subjects", "vector"}


class Names(NamedTuple):
    records: str
    views: str

    @classmethod
    def new(cls, base: str, snapshot: str) -> Names:
        """Never given before: what a killed build left behind is in nobody's way."""
        stem = f"kb_{base}_{snapshot}_{secrets.token_hex(4)}"
        return cls(f"{stem}_records", f"{stem}_views")


def names_of(base: str, collections: Sequence[str]) -> list[str]:
    """Those that a build of this base has made, by their names."""
    ours = re.compile(rf"kb_{re.escape(base)}_[0-9a-f]{{12}}_[0-9a-f]{{8}}_(?:records|views)")
    return [name for name in collections if ours.fullmatch(name)]


def is_ours(engine: Engine, collection: str) -> bool:
    """Has it the fields of one of our collections?"""
    return engine.fields(collection) in (_RECORDS, _VIEWS)


def manifest_of(engine: Engine, records: str) -> dict[str, Any]:
    """What the publisher noted last. Raises BaseUnreachable, and ValueError for a collection in which it is not, or not
    as kb writes it, or that lacks rows."""
    found = engine.rows(records, [MANIFEST_ROW], ["record"])
    if not found:
        raise ValueError("its publisher did not come to the end")
    noted = json.loads(unpack(found[MANIFEST_ROW]["record"]))
    try:
        if noted["format"] != FORMAT:
            raise ValueError(f"it has format {noted['format']!r}, this kb reads {FORMAT}")
        wanted = {records: int(noted["rows"]["records"]), str(noted["views"]): int(noted["rows"]["views"])}
    except (KeyError, TypeError):
        raise ValueError("its manifest is not kb's") from None
    for name, rows in wanted.items():
        if (there := engine.count(name)) != rows:
            raise ValueError(f"{name} has {there} of {rows} rows")
    return dict(noted)


def is_whole(engine: Engine, records: str) -> bool:
    with suppress(BaseUnreachable, ValueError):
        return bool(manifest_of(engine, records))
    return False


def create(engine: Engine, names: Names, dim: int) -> None:
    types = engine.types
    texts = {"element_type": types.VARCHAR, "max_length": 65_535, "max_capacity": _MOST_TEXTS}
    records, views = engine.schema(), engine.schema()
    records.add_field("row", types.INT64, is_primary=True)
    views.add_field("id", types.INT64, is_primary=True)
    views.add_field("row", types.INT64)
    for schema in (records, views):
        schema.add_field("lang", types.INT8)
        schema.add_field("subjects", types.ARRAY, element_type=types.INT32, max_capacity=MOST_SUBJECTS)
    records.add_field("terms", types.SPARSE_FLOAT_VECTOR)
    for name in ("record", "profile", "views"):
        records.add_field(name, types.ARRAY, **texts)
    views.add_field("vector", types.FLOAT_VECTOR, dim=dim)
    for name, schema in zip(names, (records, views), strict=True):
        engine.work("create_collection", name, schema=schema, consistency_level="Bounded")


def indexes(engine: Engine, views: int) -> tuple[Any, Any]:
    """Of the records and of the views, of which there are so many."""
    records, vectors = engine.index_params(), engine.index_params()
    records.add_index("terms", index_type="SPARSE_INVERTED_INDEX", metric_type="IP")
    if views <= EXACT_UP_TO:
        vectors.add_index("vector", index_type="FLAT", metric_type="IP")
    else:
        params = {"M": 16, "efConstruction": 200}
        vectors.add_index("vector", index_type="HNSW", metric_type="IP", params=params)
    return records, vectors


def pack(data: bytes) -> list[str]:
    text = base64.b64encode(zlib.compress(data, 6)).decode("ascii")
    return [text[at : at + _TEXT] for at in range(0, len(text), _TEXT)]


def unpack(texts: Sequence[str], most: int = 1 << 26) -> bytes:
    """Raises ValueError for what `pack` did not make, and for more than `most` bytes."""
    try:
        inflate = zlib.decompressobj()
        data = inflate.decompress(base64.b64decode("".join(texts), validate=True), most)
    except (zlib.error, TypeError) as error:
        raise ValueError(str(error)) from None
    if not inflate.eof or inflate.unconsumed_tail:
        raise ValueError("cut short, or larger than what kb writes")
    return data


def pack_views(vectors: Array, kinds: Array) -> list[str]:
    """`vectors`: (v, dim) float16; `kinds`: (v,) int32."""
    return pack(kinds.astype(np.uint8).tobytes() + np.ascontiguousarray(vectors, "<f2").tobytes())


def unpack_views(texts: Sequence[str], dim: int) -> tuple[Array, Array]:
    """(v, dim) float32 and (v,) int32. Raises ValueError."""
    data = unpack(texts)
    count, rest = divmod(len(data), 1 + 2 * dim)
    if rest:
        raise ValueError("no views of this dimension")
    kinds = np.frombuffer(data, np.uint8, count).astype(np.int32)
    vectors = np.frombuffer(data, "<f2", offset=count).reshape(count, dim).astype(np.float32)
    if not np.isfinite(vectors).all():
        raise ValueError("a view is no vector")
    return vectors, kinds
