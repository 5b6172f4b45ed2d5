"""A packed log as bytes in pieces, as far as it can be read."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

__all__ = ["CHUNK", "DAMAGE", "unpacked"]

CHUNK, _PIECE = 1 << 20, 1 << 14  # bytes
DAMAGE = (OSError, EOFError, zlib.error)
"""what `unpacked` raises for a damaged file"""


def unpacked(raw: BinaryIO) -> Iterator[bytes]:
    """Pieces of about `CHUNK` bytes. Reads small ones: of a damaged file at most one of those is lost."""
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
    except DAMAGE:
        yield b"".join(pieces)
        raise
    yield b"".join(pieces)
