"""The header of a published snapshot in the user's cache: downloaded once, found whole by its sha256, then mapped."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kb.arrays import Array
from kb.errors import IndexCorrupt
from kb.index import mapped, snapshot
from kb.index.milvus import layout
from kb.index.milvus.engine import Engine
from kb.index.user import cache_folder, is_own

__all__ = ["header_files"]


def header_files(engine: Engine, records: str, noted: Mapping[str, Any]) -> dict[str, dict[str, Array]]:
    """name -> arrays. `noted`: of each file what a manifest says, and in which rows of `records` it is. Raises
    BaseUnreachable, and ValueError, KeyError or TypeError for files that are not what the manifest says."""
    if not all(snapshot.is_ours(entry) for entry in noted.values()):
        raise ValueError("its manifest names a file that kb would not write")
    address = engine.address
    digest = hashlib.sha256(f"{address.uri} {address.database} {address.base}".encode()).hexdigest()[:12]
    root = cache_folder()
    folder = root / "stores" / digest
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        usable = is_own(root, folder.parent, folder)
    except OSError:
        usable = False
    if not usable:  # read anew by every process
        with tempfile.TemporaryDirectory(prefix="kb-", ignore_cleanup_errors=True) as temporary:
            return _arrays(engine, records, noted, Path(temporary))
    found = _arrays(engine, records, noted, folder)
    _sweep(folder, {entry["name"] for entry in noted.values()})
    return found


def _arrays(engine: Engine, records: str, noted: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for key, entry in noted.items():
        try:
            found[key] = mapped.arrays(folder, entry)
        except (FileNotFoundError, IndexCorrupt):
            _download(engine, records, entry, folder)
            found[key] = mapped.arrays(folder, entry)
    return found


def _download(engine: Engine, records: str, entry: Mapping[str, Any], folder: Path) -> None:
    """A piece at a time. What is not as the manifest says gets no name."""
    path = folder / str(entry["name"])
    with suppress(OSError):
        path.unlink()  # damaged
    spool = snapshot.Spool(folder, f"{path.name.partition('-')[0]}.safetensors")
    try:
        for number in range(int(entry["pieces"])):
            row = int(entry["first"]) - number
            spool.write(layout.unpack(engine.rows(records, [row], ["record"])[row]["record"], layout.PIECE + 1))
        if spool.finish() != {key: entry[key] for key in ("name", "bytes", "sha256")}:
            raise ValueError(f"{entry['name']} is damaged")
    finally:
        spool.discard()


def _sweep(folder: Path, named: set[str]) -> None:
    """Removes what the last snapshot needed and this one does not. Who has it open goes on with it."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.suffix == ".safetensors" and path.name not in named:
                with suppress(OSError):
                    path.unlink()
