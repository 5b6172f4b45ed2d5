"""Every step of a command is made to fail, and the index is looked at: is it that of before, or the new one?"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

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

_TEMPORARY = re.compile(r"\.tmp-\d+-")
_seen: dict[tuple[str, str], tuple[str, list[str]]] = {}  # what `_look` found, by scene and the bytes that lie there


@dataclass(frozen=True)
class Case:
    call: str
    number: int
    fault: str
    """KILL, or an errno's name; with a "+" it fails from this call on"""

    def __str__(self) -> str:
        return f"{self.fault} at {self.call} {self.number}"


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
        assert self.old != self.new, self.name
        shutil.rmtree(place)
        return ended

    def complaints(self, ended: Ended, place: Path, reason: str, *, strict: bool = True) -> list[str]:
        """What is wrong with how a command that met a fault ended."""
        index = self.index(place)
        wrong = ["a traceback"] if "Traceback" in ended.stderr and strict else []
        if strict and ended.code not in (0, IndexWriteFailed.exit_code):
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
            same = signature(index) == self.new
        return [] if same and there.keys() == expected else [f"the next build is not clean: {there.keys() ^ expected}"]


@dataclass
class CacheScene(Scene):
    """A search over a folder of articles, whose index is made and kept in the user's cache."""

    answer: str = ""

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
        assert ended.code == 0 and self.old != self.new and is_fresh(self.place_of(place)), ended
        shutil.rmtree(place)
        return ended

    def complaints(self, ended: Ended, place: Path, reason: str, *, strict: bool = True) -> list[str]:
        """Whatever the cache meets, the question is answered, and from the articles as they are."""
        wrong = ["a traceback"] if "Traceback" in ended.stderr and strict else []
        if strict and (ended.code or ended.stdout != self.answer):
            wrong.append(f"answered {ended.code}: {ended.stdout!r} {ended.stderr!r}")
        return wrong

    def again(self, place: Path) -> list[str]:
        ended = warm.run(self.command(place), place / "scratch")
        wrong = [] if (ended.code, ended.stdout) == (0, self.answer) else [f"the next search: {ended}"]
        if not is_fresh(self.place_of(place)):
            wrong.append("the next search did not renew the index")
        return wrong + self.unclean(self.index(place))


def cases(calls: Counter[str]) -> Iterator[Case]:
    for fault in FAULTS:
        for call, count in sorted(calls.items()):
            for number in range(1, count + 1):
                yield Case(call, number, fault)


def try_case(scene: Scene, case: Case, root: Path) -> Found:
    place = root / f"{scene.name.replace(' ', '-')}-{case.call}-{case.number}-{case.fault}"
    shutil.copytree(scene.before, place)
    how = "signal=KILL" if case.fault == "KILL" else f"error={case.fault}"
    ended = warm.traced(scene.command(place), place.with_suffix(".run"), f"{case.call}:{how}:when={case.number}")
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
    """No file may grow beyond so many bytes."""
    place = root / f"{scene.name.replace(' ', '-')}-limit-{max_bytes}"
    shutil.copytree(scene.before, place)
    command = scene.command(place)
    limited = Command(command.arguments, command.environment, partial(_limit, scene.prepare, max_bytes))
    # What it says goes to a file as well, which must not grow beyond the limit either.
    ended = warm.run(limited, place.with_suffix(".run"))
    strict = max_bytes > 4096
    return judge(
        scene, place, ended.code, scene.complaints(ended, place, os.strerror(errno.EFBIG), strict=strict)
    )


def _limit(prepare: Callable[[], None] | None, max_bytes: int) -> None:
    if prepare:
        prepare()
    warm.no_file_beyond(max_bytes)


def judge(scene: Scene, place: Path, code: int, wrong: list[str]) -> Found:
    """Looks at what lies there, and removes it."""
    key = scene.name, _bytes_of(place)
    if key not in _seen:
        _seen[key] = _look(scene, place)  # the same bytes lead to the same answers, and to the same next build
    seen, more = _seen[key]
    wrong = [*wrong, *more]
    if code == 0 and seen != "new" and not isinstance(scene, CacheScene):
        wrong.append("reported success and did not commit")
    shutil.rmtree(place)
    return Found(seen, wrong)


def _bytes_of(place: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*"), key=lambda path: _TEMPORARY.sub(".tmp-", str(path))):
        if path.is_file() and path.name != ".lock":
            data = path.read_bytes()
            digest.update(repr((_TEMPORARY.sub(".tmp-", path.name), path.parent.name, len(data))).encode() + data)
    return digest.hexdigest()


def _look(scene: Scene, place: Path) -> tuple[str, list[str]]:
    index, wrong, seen = scene.index(place), [], "mixed"
    try:
        found = signature(index)
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


def same_calls(scene: Scene, ours: Ended, real: Sequence[str], root: Path) -> list[str]:
    """Does a real `python -m kb` call what the forked process called? Its own files and the terminal are left out."""
    return []
