"""Makes every step of a real `kb build` fail, damages every file, and reads while it builds: is an index ever torn?

    python scripts/crash.py [--segments] [--builds 1000] [--self-test]

A build over an old index is traced by strace, and run again for each of its writes, syncs, renames, removals and new
files: once killed there, once with ENOSPC and once with EIO as the answer; then under file size limits and, where
mounting is allowed, on nearly full disks. After each, a signature of the index (all records, and what 20 questions
find) must be that of the old state or of the new one, and the next build must leave exactly the new one. The same is
done to the first build, and to a search that renews the index in the user's cache. Then: 2 and 8 at once, every file
damaged in every way, three readers while an index is built to and fro. `--segments` does all of it with an index of
many small segments, which a build adds to, marks as dead and joins, as in a base of a million records. `--self-test`
breaks what writes and reads on purpose: each must be noticed. Exits with 1 when anything was torn, with 77 when strace
is missing.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import multiprocessing
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torn import broken, corpus, damage, faults, together, warm
from torn.faults import CacheScene, Found, Scene

from kb.cli import main as kb
from kb.index.build import build
from kb.index.snapshot import MANIFEST, read_manifest

FOLDERS = 20
AT_ONCE = ((2, 12), (8, 6))
"""processes, rounds"""
REAL = "import sys; from torn import corpus; {}; sys.argv[0] = 'kb'; from kb.cli import main; main()"


@dataclass
class Row:
    """Of the table."""

    seen: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


Job = tuple[str, str, Callable[..., Any], tuple[Any, ...]]
"""the row that it counts in, what it is, what does it"""


class Table:
    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}

    def add(self, name: str, what: str, found: Found | tuple[Counter[str], list[str]]) -> None:
        row = self.rows.setdefault(name, Row())
        row.seen.update([found.seen] if isinstance(found, Found) else found[0])
        for wrong in found.wrong if isinstance(found, Found) else found[1]:
            row.wrong.append(f"{name}, {what}: {wrong}")

    def show(self) -> None:
        print(f"{'':34}{'tried':>7}{'old':>7}{'new':>7}{'mixed':>7}{'lost':>7}{'wrong':>7}")
        for name, row in self.rows.items():
            if "trying" in row.seen:  # damage
                tried, rest = row.seen.pop("trying"), row.seen
                more = ", ".join(f"{rest[kind]:,} {kind}" for kind in ("refused", "harmless", "mended"))
                print(f"{name:34}{tried:7,}{'':28}{len(row.wrong):7}   {more}")
                row.seen = Counter(tried=tried)
            else:
                counts = "".join(f"{row.seen[kind]:7,}" for kind in ("old", "new", "mixed", "lost"))
                print(f"{name:34}{sum(row.seen.values()):7,}{counts}{len(row.wrong):7}")

    @property
    def wrong(self) -> list[str]:
        return [one for row in self.rows.values() for one in row.wrong]


def scenes(root: Path, *, segments: bool) -> Iterator[Scene]:
    """Commands, each with a folder in an old state, and the articles of a new one."""
    edited, small = ([corpus.edited(count, n) for n in range(times)] for count, times in ((10, 6), (4, 4)))
    if not segments:
        whole = corpus.content(_built(root / "whole", [corpus.new(FOLDERS)]) / "index")
        yield Scene("build", *_place(root / "build", [corpus.old(FOLDERS)], corpus.new(FOLDERS)), whole=whole)
        yield Scene("first build", *_place(root / "first", [], corpus.new(FOLDERS)), whole=whole)
        yield cache(root / "cache", [corpus.old(FOLDERS), corpus.new(FOLDERS)], "RuntimeError: another a3")
    else:
        yield Scene("build, all segments", *_place(root / "all", [corpus.old(10)], corpus.new(10)))
        yield Scene("add a segment", *_place(root / "add", edited[:3], edited[3]))
        yield Scene("join segments", *_place(root / "join", edited[:4], edited[4]))
        yield Scene("join, --compact", *_place(root / "compact", small[:3], small[3]), more=["--compact"])
        yield taking_up(root)
        yield cache(root / "cache", edited[:5], "RuntimeError: edit 3")


def _place(root: Path, states: Iterable[corpus.State], last: corpus.State) -> tuple[Path, Path]:
    _built(root, states)
    return root / "before", corpus.write(root / "articles", last)


def _built(root: Path, states: Iterable[corpus.State]) -> Path:
    before = root / "before"
    (before / "cache").mkdir(parents=True)
    for state in states:
        build(corpus.write(root / "articles", state), before / "index", encoder=corpus.ENCODER)
    return before


def cache(root: Path, states: Sequence[corpus.State], question: str) -> CacheScene:
    """A search over a folder that has no index of its own, and was searched in older states."""
    root.mkdir()
    scene = CacheScene("search, index in the cache", _built(root, []), root / "articles", [question])
    for state in states[:-1]:
        corpus.write(scene.articles, state)
        ended = warm.run(scene.command(scene.before), root / "scratch")
        assert ended.code in (0, 1), ended
    corpus.write(scene.articles, states[-1])
    return scene


def taking_up(root: Path) -> Scene:
    """A build that was killed when it had noted a finished segment, and the next one."""
    scene = Scene("take up what was unfinished", *_place(root / "taking", [corpus.old(4)], corpus.new(15)))
    place = root / "taken"
    calls = shutil.copytree(scene.before, place) and warm.traced(scene.command(place), root / "scratch").calls
    renames = [rest for call, rest in calls if call == "rename"]
    noted = [
        n for n, rest in enumerate(renames, 1) if rest.partition(", ")[2].startswith(f'"{place}/index/.unfinished')
    ]
    shutil.rmtree(place)
    shutil.copytree(scene.before, place)
    warm.traced(scene.command(place), root / "scratch", f"rename:signal=KILL:when={noted[0] + 1}")
    assert (place / "index" / ".unfinished").exists(), noted
    return replace(scene, before=place)


def jobs(scene: Scene, calls: Sequence[tuple[str, str]], root: Path) -> Iterator[Job]:
    for case in faults.cases(calls, root / "undisturbed"):
        yield scene.name, str(case), faults.try_case, (scene, case, root)
    if scene.more and not isinstance(scene, CacheScene):
        return
    largest = max(path.stat().st_size for path in scene.before.rglob("*")) if scene.old != faults.NOTHING else 40_000
    for max_bytes in range(0, largest + 2000, largest // 12):
        yield "files of a limited size", str(max_bytes), faults.try_limit, (scene, max_bytes, root)
    for spare in range(4096, 4 * largest, 8192):
        yield "a full disk", str(spare), faults.try_disk, (scene, spare, root)


def damaging(scene: Scene, root: Path, *, segments: bool) -> Iterator[Job]:
    index = scene.before / "index"
    named = {MANIFEST, *(entry["name"] for entry in read_manifest(index)[0]["files"].values())}
    for path in sorted(index.iterdir()):
        times = (40, 12) if segments else (damage.FLIPS, damage.CUTS)
        if path.name.startswith(("records", "profiles", "articles")):
            times = (20, 6)  # such a damage is met by the last question, if at all
        if scene.name == "take up what was unfinished":
            if path.name in named:
                continue  # as of the other scene
            times = (40, 6) if path.name == ".unfinished" else (2, 2)
        if path.name != ".lock":
            yield "damaged files", path.name, damage.try_file, (scene, path.name, root, *times)


def _do(job: Job) -> Any:
    _, _, work, arguments = job
    return work(*arguments)


def everything(root: Path, workers: int, builds: int, *, segments: bool) -> int:
    started = warm.seconds()
    table = Table()
    made = list(scenes(root, segments=segments))
    work: list[Job] = []
    for scene in made:
        warm_up(scene, root)
    gc.collect()
    gc.freeze()  # thousands are forked from here: for none of them is this memory copied to collect it
    for scene in made:
        ended = scene.undisturbed(root)
        if scene is made[0] or isinstance(scene, CacheScene):
            corpus_as = "corpus.of_segments()" if segments else "pass"
            real = [sys.executable, "-c", REAL.format(corpus_as)]
            for wrong in faults.same_calls(scene, ended, real, root):
                table.add(scene.name, "a real process", Found("old", [wrong]))
        work += jobs(scene, ended.calls, root)
    for scene in made if segments else made[:1]:
        if scene.name in ("build", "join segments", "take up what was unfinished"):
            work += damaging(scene, root, segments=segments)
    lap = warm.seconds()
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
        for job, found in zip(work, pool.map(_do, work, chunksize=4), strict=True):
            table.add(job[0], job[1], found)
    lap = _took("faults and damage", lap)
    for scene in made:
        if scene.name in ("build", "join segments") or isinstance(scene, CacheScene):
            for count, rounds in AT_ONCE:
                for n in range(rounds):
                    table.add(f"{count} at once", f"{scene.name}, {n}", together.try_at_once(scene, count, n, root))
    lap = _took("several at once", lap)
    busy = root / "busy"
    busy.mkdir()
    states = [corpus.edited(10, n) for n in range(6)] if segments else [corpus.old(8), corpus.new(8)]
    reads, answers, snapshots, wrong = together.readers(busy, states, builds, 7 if segments else 0)
    _took("readers", lap)
    for one in wrong:
        table.add("readers", "", Found("mixed", [one]))
    table.show()
    print(
        f"{'readers':34}{reads:7,} reads of all, {answers:,} answers of {snapshots:,} snapshots, {builds:,} builds, "
        f"{len(wrong)} wrong"
    )
    for one in table.wrong:
        print(f"WRONG  {one}")
    tried = sum(sum(row.seen.values()) for row in table.rows.values())
    mixed, lost = (sum(row.seen[kind] for row in table.rows.values()) for kind in ("mixed", "lost"))
    print(f"{tried:,} faults tried, {tried - len(table.wrong):,} survived, {mixed} mixed, {lost} lost")
    _took("all", started)
    return len(table.wrong)


def warm_up(scene: Scene, root: Path) -> None:
    """Runs the command in this process, so that all of it is imported in those that are forked from it."""
    place = root / "warming"
    shutil.copytree(scene.before, place)
    command = scene.command(place)
    arguments, environment = sys.argv, dict(os.environ)
    os.environ.update(command.environment)
    sys.argv = ["kb", *command.arguments]
    quiet = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        kb()
    sys.argv = arguments
    os.environ.clear()
    os.environ.update(environment)
    shutil.rmtree(place)


def _took(what: str, since: tuple[float, float]) -> tuple[float, float]:
    now = warm.seconds()
    print(f"{what}: {now[0] - since[0]:.0f} s, of processors {now[1] - since[1]:.0f} s", flush=True)
    return now


def self_test(root: Path, *, segments: bool) -> int:
    """How many of the broken variants were not caught."""
    made = {scene.name: scene for scene in scenes(root, segments=segments)}
    for scene in made.values():
        warm_up(scene, root)
    missed = 0
    for name, work in _broken(made, root, segments=segments):
        caught = next((wrong for found in work for wrong in (found.wrong if isinstance(found, Found) else found)), "")
        missed += not caught
        print(f"{'caught' if caught else 'NOT CAUGHT'}: {name}{': ' if caught else ''}{caught[:150]}", flush=True)
    print("the harness caught them all" if not missed else "THE HARNESS DID NOT CATCH ALL")
    return missed


def _broken(made: dict[str, Scene], root: Path, *, segments: bool) -> Iterator[tuple[str, Iterator[Any]]]:
    def killed(name: str, variant: Callable[[], None]) -> tuple[str, Iterator[Found]]:
        scene = replace(made[name], prepare=variant)
        calls = scene.undisturbed(root).calls
        some = [case for case in faults.cases(calls, root / "undisturbed") if case.fault == "KILL"]
        return f"{name}, {variant.__name__}", (faults.try_case(scene, case, root) for case in some)

    if segments:
        for name in ("build, all segments", "add a segment", "join segments", "join, --compact"):
            yield killed(name, broken.in_place)
        yield killed("join segments", broken.joined_too_early)
        yield killed("join, --compact", broken.joined_too_early)
        yield killed("search, index in the cache", broken.joined_too_early)
        yield killed("take up what was unfinished", broken.in_place)
    else:
        for name in made:
            yield killed(name, broken.in_place)
    yield killed("search, index in the cache", broken.marked_too_early)
    first = made["join segments" if segments else "build"]
    first.undisturbed(root)
    files = sorted(path.name for path in (first.before / "index").glob("dense-*"))
    tried = (damage.try_file(first, name, root, 20, 5, broken.unchecked)[1] for name in files)
    yield "damaged files, unchecked", tried
    alone = replace(first, prepare=broken.unlocked)
    yield "8 at once, unlocked", (together.try_at_once(alone, 8, 2 * n, root) for n in range(20))
    busy = root / "busy"
    busy.mkdir()
    states = [corpus.edited(10, n) for n in range(6)] if segments else [corpus.old(8), corpus.new(8)]
    yield "readers, in_place", (together.readers(busy, states, 200, 7, broken.in_place)[3] for _ in range(1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, help="how many builds the readers are to survive")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--segments", action="store_true", help="of an index of many small segments")
    parser.add_argument("--self-test", action="store_true", help="try what is not crash-safe: must be caught")
    args = parser.parse_args()
    if shutil.which("strace") is None:
        print("skipped: strace is not installed (apt-get install strace)", file=sys.stderr)
        return 77
    if args.segments:
        corpus.of_segments()
    builds = args.builds if args.builds is not None else 300 if args.segments else 1000
    with tempfile.TemporaryDirectory(prefix="kb-crash-", dir=_memory()) as name:
        if args.self_test:
            return int(bool(self_test(Path(name), segments=args.segments)))
        return int(bool(everything(Path(name), args.jobs, builds, segments=args.segments)))


def _memory() -> str | None:
    """A disk in memory: what a disk may do to a build is made to happen, not waited for."""
    folder = Path("/dev/shm")
    return (
        str(folder)
        if folder.is_dir() and os.access(folder, os.W_OK) and shutil.disk_usage(folder).free > 1 << 28
        else None
    )


if __name__ == "__main__":
    sys.exit(main())
