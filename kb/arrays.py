"""Writes named arrays as a safetensors file, and reads such a file without copying it.

The `safetensors` package copies every tensor into memory, but a query needs a few rows of a 25 MB table. So the reader
is our own. It makes the checks of the format (https://github.com/huggingface/safetensors#format): a bounded header,
offsets inside the file, sizes that agree with dtype and shape. Loading such a file runs no code from it.
"""

from __future__ import annotations

import json
import math
import mmap
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kb.errors import IndexCorrupt

__all__ = ["Array", "Shape", "dump", "finite", "load", "open_arrays", "stream"]

Array = npt.NDArray[Any]

MAX_HEADER_BYTES = 1 << 20  # the format allows 100 MB; a dozen tensors need 1 kB
_NAMES = {
    **{f"<f{n // 8}": f"F{n}" for n in (16, 32, 64)},
    **{f"<i{n // 8}": f"I{n}" for n in (32, 64)},
    **{f"<u{n // 8}": f"U{n}" for n in (16, 32, 64)},
    "|i1": "I8",
    "|u1": "U8",
}
_DTYPES = {name: dtype for dtype, name in _NAMES.items()}


def finite(array: Array) -> Array:
    """The array, with 0 in the place of what is no number or infinite."""
    return array if np.isfinite(array).all() else np.nan_to_num(array, posinf=0, neginf=0)


def dump(arrays: Mapping[str, Array], metadata: dict[str, str] | None = None) -> bytes:
    """The bytes of a safetensors file. Equal arrays give equal bytes."""
    from safetensors.numpy import save

    return bytes(save({name: np.ascontiguousarray(a) for name, a in arrays.items()}, metadata))


class Shape(NamedTuple):
    """An array that is not in memory as a whole."""

    dtype: str
    """as numpy names it: "<f2" """
    shape: tuple[int, ...]
    blocks: Iterable[Array]
    """its rows, in order"""


def stream(write: Callable[[bytes], object], arrays: Mapping[str, Array | Shape]) -> None:
    """Writes a safetensors file a block at a time. Equal arrays give equal bytes. Raises ValueError when the blocks of
    an array are not as large as it says."""
    header: dict[str, Any] = {}
    whole = {name: one if isinstance(one, Shape) else _as_shape(one) for name, one in arrays.items()}
    # The widest first, as the format's own library has them: each array then begins where its type may begin.
    ordered = sorted(whole, key=lambda name: (-np.dtype(whole[name].dtype).itemsize, name))
    at = 0
    for name in ordered:
        one = whole[name]
        size = math.prod(one.shape) * np.dtype(one.dtype).itemsize
        header[name] = {"dtype": _NAMES[one.dtype], "shape": list(one.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write(len(text).to_bytes(8, "little") + text)
    for name in ordered:
        one, left = whole[name], math.prod(whole[name].shape)
        for block in one.blocks:
            left -= block.size
            write(np.ascontiguousarray(block, one.dtype).tobytes())
        if left:
            raise ValueError(f"{name}: its blocks hold {-left} numbers more than its shape")


def _as_shape(array: Array) -> Shape:
    return Shape(array.dtype.str, array.shape, [array])


def open_arrays(path: Path) -> dict[str, Array]:
    """The file's arrays by name: read-only views into the memory-mapped file.

    Raises OSError, and IndexCorrupt when it is not a safetensors file.
    """
    with path.open("rb") as file:
        try:
            view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file cannot be mapped
            view = None
    return load(b"" if view is None else memoryview(view), path)


def load(data: bytes | memoryview, path: str | Path) -> dict[str, Array]:
    """The arrays in `data` by name, as read-only views. Raises IndexCorrupt, which names `path`."""
    try:
        return _load(data)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise IndexCorrupt(f"not a readable safetensors file ({error})", path=path) from None


def _load(data: bytes | memoryview) -> dict[str, Array]:
    data = memoryview(data)  # slices of it copy nothing
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 or not 0 < size <= min(MAX_HEADER_BYTES, len(data) - 8):
        raise ValueError("bad header size")
    header = json.loads(bytes(data[8 : 8 + size]))
    body = data[8 + size :]
    arrays: dict[str, Array] = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        dtype, shape = np.dtype(_DTYPES[entry["dtype"]]), tuple(entry["shape"])
        first, last = entry["data_offsets"]
        if not all(isinstance(n, int) and n >= 0 for n in (*shape, first, last)) or last > len(body):
            raise ValueError(f"{name}: offsets outside the file")
        if last - first != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"{name}: size does not agree with shape")
        arrays[name] = (
            np.frombuffer(body, dtype, math.prod(shape), first).reshape(shape)
            if last > first
            else np.empty(shape, dtype)
        )
    return arrays
