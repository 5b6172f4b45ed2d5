"""Writes files and a manifest into a folder so that a reader sees all of them or none.

Each file is written under a temporary name, flushed, synced and renamed to `<stem>-<sha256[:12]>.<ext>`, and the folder
is synced; then `manifest.json` is replaced the same way. That rename is the commit. Afterwards files of our own name
pattern that the manifest does not name are removed. One writer at a time holds a lock that ends with its process.
Readers take no lock: they read the manifest, open the files it names, and start again from the manifest when a file has
gone. Nothing is repaired on the way: the articles are the truth, an index is derived from them.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import mmap
import os
import re
import shlex
import stat
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypedDict, TypeVar

from kb.errors import IndexBusy, IndexCorrupt, IndexMissing, IndexWriteFailed

__all__ = [
    "FORMAT",
    "MANIFEST",
    "Entry",
    "Spool",
    "checked",
    "is_ours",
    "locked",
    "open_file",
    "open_plainly",
    "publish",
    "read_file",
    "read_manifest",
    "store",
    "sweep",
    "verify",
    "write",
]

FORMAT = 9
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 1 << 20
_LOCK = ".lock"
_TEMPORARY = ".tmp-{pid}-{name}"
_OURS = re.compile(r"[a-z]{3,20}-[0-9a-f]{12}\.(?:safetensors|jsonl|bin|faiss)\Z")
_LEFT_BEHIND = re.compile(r"\.tmp-\d+-(?:[a-z]{3,20}(?:-[0-9a-f]{12})?)?\.[a-z]+\Z")
_BUILD = "kb build"
_PIECE = 1 << 20  # bytes
# Never through a link somebody put there, and never waiting for the other end of a pipe.
_PLAINLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the folder's writer lock. Raises IndexBusy at once when another process has it, IndexWriteFailed when the
    folder cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fileno = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | _PLAINLY, 0o666)
        file = os.fdopen(fileno, "r+b", buffering=0)  # nothing may be left for close() to write: the disk may be full
    except OSError as error:
        raise IndexWriteFailed(
            f"cannot write here ({error.strerror})", path=folder, hint="choose another --index"
        ) from None
    with file:
        try:
            _lock(file.fileno())
        except OSError as error:
            if error.errno not in _HELD:
                raise IndexWriteFailed(
                    f"cannot lock here ({error.strerror})", path=folder, hint="choose an --index on a local disk"
                ) from None
            file.seek(0)
            holder = file.read(20).decode("ascii", "replace").strip() or "unknown"
            raise IndexBusy(
                f"a build is already running here (process {holder})", path=folder, hint="wait for it to end"
            ) from None
        with contextlib.suppress(OSError):  # the number is for the message only: the lock itself is the kernel's
            file.truncate(0)
            file.seek(0)
            file.write(str(os.getpid()).encode())
        yield


_HELD = (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES, errno.EDEADLK)
"""by these a system says that another process has the lock; by others, that it has no locks"""

if sys.platform == "win32":
    import msvcrt

    def _lock(fileno: int) -> None:
        os.lseek(fileno, 1 << 30, os.SEEK_SET)  # a byte beyond the text, which stays readable
        msvcrt.locking(fileno, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(fileno: int) -> None:
        fcntl.flock(fileno, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Entry(TypedDict):
    """What a manifest says of a file."""

    name: str
    bytes: int
    sha256: str


def publish(folder: Path, files: Mapping[str, bytes | Entry], manifest: Mapping[str, Any]) -> str:
    """Commits `files` ("stem.ext" -> bytes, or "key" -> the entry of one that `store` or a `Spool` has written) and
    `manifest` and returns the snapshot's id. The caller holds the lock.

    The same content gives the same names, the same manifest and the same id. Raises IndexWriteFailed; the old snapshot
    stays whole in that case.
    """
    _require_ours(folder / MANIFEST)
    entries: dict[str, Entry] = {}
    for plain, data in files.items():
        if isinstance(data, dict):
            entries[plain] = data
        else:
            entries[plain.partition(".")[0]] = store(folder, plain, data)
    state = _UNTOUCHED
    try:
        _sync_folder(folder)
        whole = {"format": FORMAT, **manifest, "files": entries}
        text = _text({**whole, "sha256": _digest(whole)})
        write(folder / MANIFEST, text)
        state = "the new index is there, but may not outlast a power failure"
        _sync_folder(folder)
    except OSError as error:
        raise _failed(folder, error, state) from None
    sweep(folder, {entry["name"] for entry in entries.values()})
    return _snapshot_id(text)


def store(folder: Path, plain: str, data: bytes) -> Entry:
    """Writes one file ("stem.ext") under the name that its content gives it, synced. It counts when a manifest names
    it. Raises IndexWriteFailed."""
    digest = hashlib.sha256(data).hexdigest()
    stem, _, extension = plain.partition(".")
    name = f"{stem}-{digest[:12]}.{extension}"
    try:
        if not _holds(folder / name, data):
            write(folder / name, data)
    except OSError as error:
        raise _failed(folder, error, _UNTOUCHED) from None
    return {"name": name, "bytes": len(data), "sha256": digest}


class Spool:
    """A file of the index that is written a piece at a time, and gets its name when it is whole. What was written can
    be read again. Raises IndexWriteFailed."""

    def __init__(self, folder: Path, plain: str) -> None:
        """`plain`: "stem.ext". One of a name at a time."""
        self._folder, self._plain, self._digest = folder, plain, hashlib.sha256()
        self._path = folder / _TEMPORARY.format(pid=os.getpid(), name=plain)
        self.size: int = 0
        """bytes written so far"""
        self._named = False
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _PLAINLY
            fileno = _created(self._path, lambda path: os.open(path, flags, 0o666))
        except OSError as error:  # there is no file yet that `_telling` could discard
            raise _failed(folder, error, _UNTOUCHED) from None
        self._file = os.fdopen(fileno, "r+b", buffering=1 << 20)

    def write(self, data: bytes | memoryview) -> None:
        with self._telling():
            self._file.write(data)
        self._digest.update(data)
        self.size += memoryview(data).nbytes

    def read(self, offset: int, size: int) -> bytes:
        with self._telling():
            self._file.flush()
            self._file.seek(offset)
            data = self._file.read(size)
            self._file.seek(0, os.SEEK_END)
        return data

    def opened(self) -> BinaryIO:
        """The file with all that was written, to be read."""
        with self._telling():
            self._file.flush()
        return self._file

    def finish(self) -> Entry:
        stem, _, extension = self._plain.partition(".")
        digest = self._digest.hexdigest()
        name = f"{stem}-{digest[:12]}.{extension}"
        with self._telling(self._folder / name):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._path.replace(self._folder / name)
            self._named = True
        return {"name": name, "bytes": self.size, "sha256": digest}

    def discard(self) -> None:
        """Nothing is kept of it. Does nothing after `finish`."""
        if self._named:
            return
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._path.unlink()

    @contextlib.contextmanager
    def _telling(self, path: Path | None = None) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.discard()
            error.filename = str(path or self._path)  # a failed write does not tell where
            raise _failed(self._folder, error, _UNTOUCHED) from None


_UNTOUCHED = "the old index is untouched"


def _failed(folder: Path, error: OSError, state: str) -> IndexWriteFailed:
    _sweep_temporary(folder)
    return IndexWriteFailed(
        f"the index could not be written ({error.strerror or error})",
        path=error.filename or folder,
        hint=f"{state}; free some space or choose another --index",
    )


def _require_ours(path: Path) -> None:
    """Raises IndexWriteFailed where another program keeps a manifest.json. A damaged one of ours is replaced."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        with open_plainly(path) as file:
            found = json.loads(file.read(MAX_MANIFEST_BYTES + 1))
        if not (isinstance(found, dict) and isinstance(found.get("format"), int)):
            raise IndexWriteFailed("this manifest.json is not kb's", path=path, hint="choose another --index")


def read_manifest(folder: Path) -> tuple[dict[str, Any], str]:
    """The manifest and the snapshot's id. Raises IndexMissing, or IndexCorrupt when it is not one of ours."""
    path = folder / MANIFEST
    try:
        with open_plainly(path) as file:
            text = file.read(MAX_MANIFEST_BYTES + 1)
    except FileNotFoundError:
        raise IndexMissing("there is no index here", path=folder, hint=f"run `{_BUILD}` first") from None
    except OSError as error:
        raise IndexCorrupt(f"the manifest cannot be read ({error.strerror})", path=path) from None
    if len(text) > MAX_MANIFEST_BYTES:
        raise IndexCorrupt("the manifest is larger than any that kb writes", path=path, hint=_BUILD)
    try:
        manifest = json.loads(text)
        version, files = manifest["format"], manifest["files"]
        checked = all(map(is_ours, files.values())) and not _repeat(files.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise IndexCorrupt("the manifest is damaged", path=path, hint=f"`{_BUILD}` makes a new one") from None
    if version != FORMAT:
        articles = folder.parent / str(manifest.get("folder") or "/")
        where = shlex.quote(str(articles)) if articles.parent == folder.parent and articles.is_dir() else "DIR"
        raise IndexCorrupt(
            f"the index has format {version!r}, this kb reads {FORMAT}",
            path=path,
            hint=f"`{_BUILD} --articles {where} --index {shlex.quote(str(folder))}` converts it",
        )
    own = manifest.pop("sha256", None)
    if own != _digest(manifest):
        raise IndexCorrupt("the manifest is damaged: its own sha256 differs", path=path, hint=f"`{_BUILD}`")
    if not checked:
        raise IndexCorrupt("the manifest names a file that kb would not write", path=path, hint=f"`{_BUILD}`")
    return manifest, _snapshot_id(text)


def _repeat(entries: Collection[Mapping[str, Any]]) -> bool:
    """Do they name the same bytes over and over, so that a small index takes all memory? Two small segments may well
    share a file."""
    distinct: dict[str, int] = {entry["name"]: entry["bytes"] for entry in entries}
    named: int = sum(entry["bytes"] for entry in entries)
    return named > 2 * sum(distinct.values())


def is_ours(entry: Mapping[str, Any]) -> bool:
    """Is this what kb would say of a file? Raises KeyError or TypeError for something else altogether."""
    return bool(_OURS.match(entry["name"])) and isinstance(entry["bytes"], int) and len(entry["sha256"]) == 64


def open_file(folder: Path, entry: Mapping[str, Any]) -> BinaryIO:
    """A file that the manifest names, of the size that it says; what it holds is not looked at.

    Raises FileNotFoundError when the file has gone (another build was published: read the manifest again), or
    IndexCorrupt.
    """
    path = folder / entry["name"]
    try:
        file = open_plainly(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        reason = "a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise IndexCorrupt(f"cannot be read ({reason})", path=path, hint=f"`{_BUILD}` writes it anew") from None
    size = os.fstat(file.fileno()).st_size
    if size != entry["bytes"]:
        file.close()
        raise IndexCorrupt(
            f"damaged: {size} bytes, the manifest says {entry['bytes']}",
            path=path,
            hint=f"`{_BUILD}` writes it anew from the articles",
        )
    return file


def read_file(folder: Path, entry: Mapping[str, Any]) -> bytes:
    """The bytes of a file that the manifest names, after their sha256 was found right. Raises as `open_file` does."""
    with open_file(folder, entry) as file:
        return b"".join(checked(file, folder / entry["name"], entry, entry["bytes"] + 1))


def verify(folder: Path, entry: Mapping[str, Any]) -> os.stat_result:
    """Reads a file that the manifest names, a piece at a time; returns its state before that. Raises as `open_file`
    does, and IndexCorrupt when its sha256 is another one."""
    with open_file(folder, entry) as file:
        state = os.fstat(file.fileno())
        for _ in checked(file, folder / entry["name"], entry):
            pass
    return state


def checked(file: BinaryIO | mmap.mmap, path: Path, entry: Mapping[str, Any], most: int = _PIECE) -> Iterator[bytes]:
    """A file in pieces of at most so many bytes. At its end raises IndexCorrupt when it is not what the manifest
    says."""
    digest, size = hashlib.sha256(), 0
    try:
        while piece := file.read(most):
            digest.update(piece)
            size += len(piece)
            yield piece
    except OSError as error:
        raise IndexCorrupt(f"cannot be read ({error.strerror})", path=path, hint=f"`{_BUILD}`") from None
    if (found := digest.hexdigest()) != entry["sha256"]:
        raise IndexCorrupt(
            f"damaged: sha256 {found[:12]}… of {size} bytes, the manifest says {entry['sha256'][:12]}… of "
            f"{entry['bytes']}",
            path=path,
            hint=f"`{_BUILD}` writes it anew from the articles",
        )


def open_plainly(path: Path) -> BinaryIO:
    """Raises OSError for what is no regular file; links are none, where the system can tell."""
    fileno = os.open(path, os.O_RDONLY | _PLAINLY)
    if not stat.S_ISREG(os.fstat(fileno).st_mode):
        os.close(fileno)
        raise OSError(errno.EINVAL, "not a regular file")
    return os.fdopen(fileno, "rb")


def _digest(manifest: Mapping[str, Any]) -> str:
    """sha256 of what a manifest says, but for this digest itself. Without indentation: that would cost every search
    3 ms, for only then json writes in C."""
    text = json.dumps(manifest, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _text(manifest: Mapping[str, Any]) -> bytes:
    return json.dumps(manifest, ensure_ascii=False, indent=1, sort_keys=True).encode("utf-8", "surrogatepass") + b"\n"


def _snapshot_id(manifest: bytes) -> str:
    return hashlib.sha256(manifest).hexdigest()[:12]


def _holds(path: Path, data: bytes) -> bool:
    try:
        return not path.is_symlink() and path.stat().st_size == len(data) and path.read_bytes() == data
    except OSError:
        return False


_Opened = TypeVar("_Opened")


def _created(path: Path, create: Callable[[Path], _Opened]) -> _Opened:
    """What `create` makes of a path where nothing is. What a killed build left behind there, whose process had the same
    number, goes. Raises OSError."""
    try:
        return create(path)
    except FileExistsError:
        path.unlink()
        return create(path)


def write(path: Path, data: bytes) -> None:
    """Puts the bytes in the file's place at once, synced, and never through a link. Raises OSError with its name."""
    temporary = path.parent / _TEMPORARY.format(pid=os.getpid(), name=path.name)  # one writer: no other has this name
    try:
        with _created(temporary, lambda path: path.open("xb")) as file:  # x: never through a link somebody put there
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # a failed write does not tell where
        raise


def _sync_folder(folder: Path) -> None:
    if sys.platform == "win32":  # a folder cannot be opened there, and NTFS keeps its own journal
        return
    fileno = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fileno)
    finally:
        os.close(fileno)


def sweep(folder: Path, named: set[str]) -> None:
    """Removes files of our own pattern that are not `named`. What cannot be removed stays."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _OURS.match(path.name) and path.name not in named and path.is_file():
                with contextlib.suppress(OSError):
                    path.unlink()
    _sweep_temporary(folder)


def _sweep_temporary(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if _LEFT_BEHIND.match(path.name):
                with contextlib.suppress(OSError):
                    path.unlink()
