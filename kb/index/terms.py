"""The terms of a segment: one block of bytes and where each begins, so that opening them reads nothing.

A million terms as Python strings take 0.3 s and 80 MB at every start. Here they stay in the mapped file; a term becomes
a string when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import overload

import numpy as np

from kb.arrays import Array

__all__ = ["Terms"]

_HEAD = 8  # bytes of a term that are compared at once
_CODEC = "utf-8", "surrogatepass"  # every Python string has bytes, and they sort as its characters do


class Terms(Sequence[str]):
    """Distinct terms, sorted by code point, which is the order of their UTF-8 bytes. Safe to share between threads."""

    block: Array
    """(bytes,) uint8: the terms in UTF-8, one after the other"""
    starts: Array
    """(terms + 1,) int64: term i is `block[starts[i]:starts[i + 1]]`"""
    heads: Array
    """(terms,) uint64: the first 8 bytes of each as a number, filled up with zeros"""

    def __init__(self, block: Array, starts: Array, heads: Array) -> None:
        """Raises ValueError when the arrays do not belong together; looks at no term."""
        if (
            any(
                array.ndim != 1 or array.dtype != kind
                for array, kind in ((block, np.uint8), (starts, np.int64), (heads, np.uint64))
            )
            or len(starts) != len(heads) + 1
            or (starts[0], starts[-1]) != (0, len(block))
        ):
            raise ValueError("the arrays of the terms do not belong together")
        self.block, self.starts, self.heads = block, starts, heads
        self._bytes, self._starts = block.data, starts.data  # of which single items come faster

    @classmethod
    def of(cls, terms: Sequence[str]) -> Terms:
        """The terms, which are distinct and sorted."""
        encoded = [term.encode(*_CODEC) for term in terms]
        starts = np.concatenate([[0], np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))])
        return cls(np.frombuffer(b"".join(encoded), np.uint8), starts.astype(np.int64), _heads(encoded))

    @classmethod
    def among(cls, arrays: Mapping[str, Array], name: str) -> Terms:
        """Those that `arrays` has put under this name. Raises KeyError or ValueError."""
        return cls(*(arrays[f"{name}_{part}"] for part in ("block", "starts", "heads")))

    def arrays(self, name: str) -> dict[str, Array]:
        """What goes into a file, under `name`."""
        return {f"{name}_block": self.block, f"{name}_starts": self.starts, f"{name}_heads": self.heads}

    def __len__(self) -> int:
        return len(self.heads)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if not -len(self) <= at < len(self):
            raise IndexError(at)
        return str(self._encoded(at % len(self)), *_CODEC)

    def _encoded(self, number: int) -> bytes:
        return bytes(self._bytes[self._starts[number] : self._starts[number + 1]])

    def is_sound(self) -> bool:
        """Looks at every byte: is each term a text of at least one character?"""
        first = self.starts[:-1]
        if (np.diff(self.starts) <= 0).any() or (self.block[first] & 0xC0 == 0x80).any():
            return False
        try:
            str(self.block.tobytes(), *_CODEC)
        except UnicodeDecodeError:
            return False
        return True

    def find(self, term: str) -> int:
        """The term's number, or -1."""
        return int(self.numbers([term])[0])

    def beginning_with(self, beginning: str) -> range:
        """The places of the terms that begin so."""
        wanted = beginning.encode(*_CODEC)
        return range(self._first(wanted), self._first(wanted + b"\xff"))  # no UTF-8 holds this byte

    def _first(self, wanted: bytes) -> int:
        """The place of the first term that is not before `wanted`."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self._encoded(middle) < wanted else (low, middle)
        return low

    def numbers(self, terms: Sequence[str]) -> Array:
        """(len(terms),) int64: the number of each, or -1."""
        encoded = [term.encode(*_CODEC) for term in terms]
        heads = _heads(encoded)
        order = np.argsort(heads)  # neighbours are found near each other
        firsts, lasts = np.empty(len(terms), np.int64), np.empty(len(terms), np.int64)
        firsts[order] = np.searchsorted(self.heads, heads[order], side="left")
        lasts[order] = np.searchsorted(self.heads, heads[order], side="right")
        ranges = zip(encoded, firsts.tolist(), lasts.tolist(), strict=True)
        return np.fromiter((self._among(term, first, last) for term, first, last in ranges), np.int64, len(terms))

    def _among(self, term: bytes, first: int, last: int) -> int:
        """The number of the term, which is in [first, last) or nowhere; else -1."""
        end = last
        while first < last:
            middle = (first + last) // 2
            if self._encoded(middle) < term:
                first = middle + 1
            else:
                last = middle
        return first if first < end and self._encoded(first) == term else -1


def _heads(encoded: Iterable[bytes]) -> Array:
    """(len(encoded),) uint64: in the order of the bytes, except that what begins alike is equal."""
    joined = b"".join(one[:_HEAD].ljust(_HEAD, b"\0") for one in encoded)
    return np.frombuffer(joined, ">u8").astype(np.uint64)
