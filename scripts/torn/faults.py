"""Every step of a command is made to fail, and the index is looked at: is it that of before, or the new one?"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import ClassVar

from kb.errors import IndexMissing, IndexWriteFailed, KbError
from kb.index.build import build
from kb.index.locate import Location, is_fresh
from kb.index.snapshot import MANIFEST, read_manifest
from torn import warm
from torn.corpus import ENCODER, content, signature
from torn.warm import Command, Ended

FAULTS = ("KILL", "ENOSPC", "EIO")
NOTHING = "nothing"
"""the signature of an index that is not there"""

OPEN, MAKES = "openat", "O_CREAT"
_LIKELY = re.compile(r"\d+%")
_TEMPORARY = re.compile(r"\.tmp-\d+-")
# What was found, by the bytes that lie there: the same bytes lead to the same answers, and to the same next build.
_seen: dict[tuple[str, str], tuple[str, list[str]]] = {}
_signatures: dict[str, str] = {}


@dataclass(frozen=True)
class Case:
    call: str
    number: int
    fault: str
    """KILL, or an errno's name"""
    path: str = ""
    """of a file that is made, below the place, with PID for the number of the process. Of the calls that open a file
    only those are counted that open this one: how many others there are depends on what is in memory already"""

    def __str__(self) -> str:
        return f"{self.fault} at {self.call} {self.number} {self.path}"


@dataclass
class Found:
    seen: str
    """old, new, mixed (something else can be read), or lost (nothing can be)"""
    wrong: list[str] = field(default_factory=list)


@dataclass
class Scene:
    """A command and the folder that it changes. `before` holds `index/`, and `cache/`, the user's."""

    name: str
    before: Path
    articles: Path
    more: Sequence[str] = ()
    prepare: Callable[[], None] | None = None
    whole: dict[str, bytes] = field(default_factory=dict)
    """the bytes of a new index that was built from nothing, where the next build must lead to them"""
    old: str = NOTHING
    new: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    """articles, issues and records of the new state"""

    good: ClassVar[tuple[int, ...]] = (0,)
    """exit codes of a command that did what it should"""

    def index(self, place: Path) -> Path:
        return place / "index"

    def command(self, place: Path) -> Command:
        build = ["build", "--articles", str(self.articles), "--index", str(self.index(place)), *self.more]
        return Command(build, {"XDG_CACHE_HOME": str(place / "cache")}, self.prepare)

    def undisturbed(self, root: Path) -> Ended:
        """Runs it once, and learns what it should lead to."""
        place = root / "undisturbed"
        if (self.before / "index" / MANIFEST).exists():
            self.old = signature(self.before / "index")
        shutil.copytree(self.before, place)
        ended = warm.traced(self.command(place), root / "scratch", paths=True)
        if ended.code != 0:
            raise SystemExit(f"{self.name}: {ended}")
        self.new = signature(self.index(place))
        counts = read_manifest(self.index(place))[0]["counts"]
        self.counts = {name: counts[name] for name in ("articles", "issues", "records")}
        assert self.old != self.new, self.name
        shutil.rmtree(place)
        return ended

    def complaints(self, ended: Ended, place: Path, reason: str, *, strict: bool = True) -> list[str]:
        """What is wrong with how a command that met a fault ended."""
        index = self.index(place)
        wrong = ["a traceback"] if "Traceback" in ended.stderr and strict else []
        if strict and ended.code not in (*self.good, IndexWriteFailed.exit_code):
            wrong.append(f"exit code {ended.code}: {ended.stderr}")
        if (
            strict
            and ended.code == IndexWriteFailed.exit_code
            and not (reason in ended.stderr and (str(index) in ended.stderr or "stdout" in ended.stderr))
        ):
            wrong.append(f"the message does not say what and where: {ended.stderr!r}")
        return wrong

    def again(self, place: Path) -> list[str]:
        """What is wrong after the next build: it must hold the new state, and no file more. The bytes of an index of
        many segments depend on what was there before."""
        index = self.index(place)
        build(self.articles, index, encoder=ENCODER)
        return self.unclean(index)

    def unclean(self, index: Path) -> list[str]:
        there = content(index)
        if self.whole:
            expected, same = set(self.whole), there == self.whole
        else:
            expected = {entry["name"] for entry in read_manifest(index)[0]["files"].values()} | {MANIFEST}
            same = _signature(index) == self.new
        return [] if same and there.keys() == expected else [f"the next build is not clean: {there.keys() ^ expected}"]


@dataclass
class CacheScene(Scene):
    """A search over a folder of articles, whose index is made and kept in the user's cache."""

    answer: str = ""
    good: ClassVar[tuple[int, ...]] = (0, 1)  # known, likely

    def place_of(self, place: Path) -> Location:
        return Location(self.index(place), self.articles, True)

    def index(self, place: Path) -> Path:
        name = hashlib.sha256(os.fsencode(os.path.realpath(self.articles))).hexdigest()[:12]
        return place / "cache" / "kb-issues" / name

    def command(self, place: Path) -> Command:
        search = ["search", "--index", str(self.articles), *self.more]
        return Command(search, {"XDG_CACHE_HOME": str(place / "cache")}, self.prepare)

    def undisturbed(self, root: Path) -> Ended:
        if (self.index(self.before) / MANIFEST).exists():
            self.old = signature(self.index(self.before))
        place = root / "undisturbed"
        shutil.copytree(self.before, place)
        ended = warm.traced(self.command(place), root / "scratch", paths=True)
        self.new, self.answer = signature(self.index(place)), ended.stdout
        assert self.is_right(ended) and self.old != self.new and is_fresh(self.place_of(place)), ended.stderr
        shutil.rmtree(place)
        return ended

    def is_right(self, ended: Ended) -> bool:
        """The expected text. How likely it is may depend on records that are dead."""
        one, other = (_LIKELY.sub("", text) for text in (ended.stdout, self.answer))
        return ended.code in self.good and one == other

    def complaints(self, ended: Ended, place: Path, reason: str, *, strict: bool = True) -> list[str]:
        """Whatever the cache meets, the question is answered, and from the articles as they are."""
        wrong = ["a traceback"] if "Traceback" in ended.stderr and strict else []
        if strict and not self.is_right(ended):
            wrong.append(f"answered {ended.code}: {ended.stdout!r} {ended.stderr!r}")
        return wrong

    def again(self, place: Path) -> list[str]:
        wrong: list[str] = []
        for what in ("next", "one after that"):
            ended = warm.run(self.command(place), place / "scratch")
            wrong += [] if self.is_right(ended) else [f"the search {what}: {ended}"]
            if not is_fresh(self.place_of(place)):
                wrong.append(f"the search {what} did not renew the index")
            (self.index(place) / ".stamp").unlink(missing_ok=True)  # what a build could not remove goes with the next
        return wrong + self.unclean(self.index(place))


def cases(calls: Sequence[tuple[str, str]], place: Path) -> Iterator[Case]:
    """Every step of a run in `place` that was undisturbed. Of the files that are opened, those that are made. Killed
    before a call that follows one which changed no file, nothing else lies there than killed before that one: it is
    not tried twice."""
    counts: Counter[str] = Counter()
    changed = True
    for call, rest in calls:
        path = rest.split('"')[1] if call == OPEN else ""
        counts[call + path] += 1
        if call == OPEN and not (MAKES in rest and path.startswith(str(place))):
            continue
        path = _TEMPORARY.sub(".tmp-PID-", path.removeprefix(f"{place}/"))
        for fault in FAULTS:
            if changed or fault != "KILL":
                yield Case(call, counts[call + rest.split('"')[1] if call == OPEN else call], fault, path)
        changed = "sync" not in call and not rest.startswith(("1<", "2<")) and " = -1 " not in rest


def try_case(scene: Scene, case: Case, root: Path) -> Found:
    place = root / f"{scene.name.replace(' ', '-')}-{abs(hash(case))}"
    shutil.copytree(scene.before, place)
    how = "signal=KILL" if case.fault == "KILL" else f"error={case.fault}"
    only = str(place / case.path) if case.path else None
    inject = f"{case.call}:{how}:when={case.number}"
    ended = warm.traced(scene.command(place), place.with_suffix(".run"), inject, only=only)
    wrong = []
    if ended.hangs:
        wrong.append("hangs")
    if case.fault == "KILL":
        if ended.code != -signal.SIGKILL:
            wrong.append("was not killed")
    else:
        injected = [rest for _, rest in ended.calls if "(INJECTED)" in rest]
        if not injected:
            wrong.append("the fault did not happen")
        on_terminal = bool(injected) and injected[0].startswith(("1,", "2,"))
        wrong += scene.complaints(ended, place, os.strerror(getattr(errno, case.fault)), strict=not on_terminal)
    return judge(scene, place, ended.code, wrong)


def try_limit(scene: Scene, max_bytes: int, root: Path) -> Found:
    """No file may grow beyond so many bytes: a write is cut off in its middle."""
    place = root / f"{scene.name.replace(' ', '-')}-limit-{max_bytes}"
    shutil.copytree(scene.before, place)
    command = scene.command(place)
    limited = Command(command.arguments, command.environment, partial(_limit, scene.prepare, max_bytes))
    ended = warm.run(limited, place.with_suffix(".run"))
    strict = max_bytes > 4096  # what it says goes to a file, too
    # Also of a search: no temporary folder can be written to, either.
    wrong = Scene.complaints(scene, ended, place, os.strerror(errno.EFBIG), strict=strict)
    return judge(scene, place, ended.code, wrong)


def _limit(prepare: Callable[[], None] | None, max_bytes: int) -> None:
    if prepare:
        prepare()
    warm.no_file_beyond(max_bytes)


def try_disk(scene: Scene, spare: int, root: Path) -> Found:
    """On a disk of its own, with so many bytes left."""
    disk = root / f"{scene.name.replace(' ', '-')}-disk-{spare}"
    used = sum(-(-path.stat().st_size // 4096) * 4096 for path in scene.before.rglob("*") if path.is_file())
    if not mounted(disk, used + spare):
        return Found("skipped")
    try:
        place = disk / "place"
        shutil.copytree(scene.before, place)
        ended = warm.run(scene.command(place), disk.with_suffix(".run"))
        wrong = scene.complaints(ended, place, os.strerror(errno.ENOSPC))
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        return judge(scene, place, ended.code, wrong)
    finally:
        subprocess.run(["umount", str(disk)], check=True)
        disk.rmdir()


def mounted(disk: Path, size: int) -> bool:
    """Mounts a disk of so many bytes; False where that is not allowed."""
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "kb-crash", str(disk)]
    if shutil.which("mount") and not subprocess.run(mount, capture_output=True).returncode:
        return True
    disk.rmdir()
    return False


def judge(scene: Scene, place: Path, code: int, wrong: list[str]) -> Found:
    """Looks at what lies there, and removes it."""
    key = scene.name, _bytes_of(place)
    if key not in _seen:
        _seen[key] = _look(scene, place)
    seen, more = _seen[key]
    wrong = [*wrong, *more]
    if code == 0 and seen != "new" and not isinstance(scene, CacheScene):
        wrong.append("reported success and did not commit")
    shutil.rmtree(place)
    return Found(seen, wrong)


def _signature(index: Path) -> str:
    key = _bytes_of(index, temporary=False)
    if key not in _signatures:
        _signatures[key] = signature(index)
    return _signatures[key]


def _bytes_of(place: Path, *, temporary: bool = True) -> str:
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*"), key=lambda path: _TEMPORARY.sub(".tmp-", str(path))):
        name = _TEMPORARY.sub(".tmp-", path.name)
        if path.is_file() and name != ".lock" and (temporary or not name.startswith(".tmp-")):
            data = path.read_bytes()
            digest.update(repr((name, path.parent.name, len(data))).encode() + data)
    return digest.hexdigest()


def _look(scene: Scene, place: Path) -> tuple[str, list[str]]:
    index, wrong, seen = scene.index(place), [], "mixed"
    try:
        found = _signature(index)
    except IndexMissing:
        found = NOTHING
    except (KbError, FileNotFoundError) as error:
        found, seen = "", "lost"
        wrong.append(str(error))
    seen = {scene.old: "old", scene.new: "new"}.get(found, seen)
    if seen in ("mixed", "lost"):
        wrong.append("neither old nor new")
    if isinstance(scene, CacheScene) and seen != "new" and is_fresh(scene.place_of(place)):
        wrong.append("is said to be fresh, and is not")
    try:
        wrong += scene.again(place)
    except (KbError, OSError) as error:
        wrong.append(f"the next build: {error}")
    return seen, wrong


def same_calls(scene: Scene, forked: Ended, real: Sequence[str], root: Path) -> list[str]:
    """Does a real process, started by `real`, call what the forked one called of the files below its place?"""
    place, log = root / "undisturbed", root / "real.trace"
    shutil.copytree(scene.before, place)
    command = scene.command(place)
    strace = ["strace", "-f", "-y", "-s", "0", "-o", str(log), "-e", f"trace={warm.TRACED}"]
    environment = {**os.environ, **command.environment, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([*strace, *real, *command.arguments], capture_output=True, env=environment)
    calls = warm.CALL.findall(log.read_text(errors="replace"))
    shutil.rmtree(place)
    one, other = ([_plain(*call) for call in found if str(place) in call[1]] for found in (forked.calls, calls))
    assert len(one) > 20 and done.returncode == forked.code, done.stderr
    if one == other:
        return []
    differ = next((pair for pair in zip(one, other, strict=False) if pair[0] != pair[1]), (len(one), len(other)))
    return [f"{scene.name}: a real process does something else than a forked one: {differ}"]


def _plain(call: str, rest: str) -> str:
    """A traced call without numbers of processes, descriptors and bytes."""
    return call + re.sub(r"\d+(?=<)", "", _TEMPORARY.sub(".tmp-", rest)).partition(" = ")[0].rstrip()
