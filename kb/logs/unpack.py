"""The bytes of a log in pieces, packed with gzip or not, as far as they can be read."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from io import BufferedReader

from kb.errors import LogDamaged, QueryError

__all__ = ["CHUNK", "chunks_of", "is_packed"]

CHUNK, _PIECE = 1 << 20, 1 << 14  # bytes
_DAMAGE = (OSError, EOFError, zlib.error)
_GZIP = b"\x1f\x8b"  # RFC 1952, 2.3.1


def is_packed(raw: BufferedReader) -> bool:
    """By its first bytes: a name may not tell, and a pipe has none."""
    return raw.peek(len(_GZIP)).startswith(_GZIP)


def chunks_of(raw: BufferedReader, name: str) -> Iterator[bytes]:
    """Pieces of up to about `CHUNK` bytes, unpacked; of a pipe what has come so far. Raises LogDamaged, after all that
    can be read, for a log that cannot be read to its end, QueryError for one that cannot be read at all."""
    try:
        packed = is_packed(raw)
    except OSError as error:
        raise QueryError(f"cannot be read ({error.strerror or error})", path=name) from None
    try:
        yield from _unpacked(raw) if packed else iter(lambda: raw.read1(CHUNK), b"")
    except _DAMAGE as error:
        raise LogDamaged(f"this log cannot be read to its end ({error})", path=name) from None


def _unpacked(raw: BufferedReader) -> Iterator[bytes]:
    """Reads small pieces: of a damaged file at most one of those is lost."""
    import gzip  # few logs are packed, and a search should start at once

    stream = gzip.GzipFile(fileobj=raw)
    pieces: list[bytes] = []
    size = 0
    try:
        while piece := stream.read1(_PIECE):
            pieces.append(piece)
            size += len(piece)
            if size >= CHUNK:
                yield b"".join(pieces)
                pieces, size = [], 0
    except _DAMAGE:
        yield b"".join(pieces)
        raise
    yield b"".join(pieces)
