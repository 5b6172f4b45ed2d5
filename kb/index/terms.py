"""Sorted names as one block of bytes: what an index looks up by bisection, without a Python string for each.

A million terms as Python strings take a second to make and 70 MB; as a block they are mapped from the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from kb.arrays import Array

__all__ = ["Terms", "pack"]


def pack(name: str, terms: Iterable[str]) -> dict[str, Array]:
    """The arrays from which `Terms.of` reads the terms again: `name` (bytes,) uint8, `name_starts` (t + 1,) int64."""
    encoded = [_bytes(term) for term in terms]
    starts = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=starts[1:])
    return {name: np.frombuffer(b"".join(encoded), np.uint8), f"{name}_starts": starts}


class Terms(Sequence[str]):
    """Distinct names, sorted by code point, which is the order of their UTF-8 bytes. Safe to share between threads."""

    def __init__(self, block: Array, starts: Array) -> None:
        """`block`: (bytes,) uint8; term i is `block[starts[i]:starts[i + 1]]`. Raises ValueError when the two do not
        fit;
        only the ends are looked at."""
        if not (
            block.dtype == np.uint8 and block.ndim == starts.ndim == 1 and len(starts) and starts.dtype == np.int64
        ):
            raise ValueError("these are no packed names")
        if starts[0] != 0 or starts[-1] != len(block):
            raise ValueError("packed names and their places do not fit")
        self._block, self._starts = memoryview(block.data), starts

    @classmethod
    def of(cls, arrays: Mapping[str, Array], name: str) -> Terms:
        return cls(arrays[name], arrays[f"{name}_starts"])

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[str]: ...
    def __getitem__(self, at: int | slice) -> str | Sequence[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._at(at).decode("utf-8", "surrogatepass")

    def find(self, term: str) -> int:
        """Where `term` stands, or -1."""
        wanted = _bytes(term)
        at = self._first(wanted)
        return at if at < len(self) and self._at(at) == wanted else -1

    def beginning_with(self, prefix: str) -> range:
        """The places of the names that begin so."""
        wanted = _bytes(prefix)
        return range(self._first(wanted), self._first(wanted + b"\xff"))  # no UTF-8 holds this byte

    def _first(self, wanted: bytes) -> int:
        """The place of the first name that is not before `wanted`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        return low

    def _at(self, at: int) -> bytes:
        return self._block[self._starts[at] : self._starts[at + 1]].tobytes()


def _bytes(term: str) -> bytes:
    return term.encode("utf-8", "surrogatepass")
