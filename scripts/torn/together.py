"""Several at once: builders of one index, searches that want the same index made, and readers while it is built."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from kb.base import KnowledgeBase
from kb.errors import IndexBusy
from kb.index.build import build
from torn import warm
from torn.corpus import ENCODER, QUESTIONS, State, answer, signature, write
from torn.faults import CacheScene, Found, Scene, judge


def try_at_once(scene: Scene, count: int, round_: int, root: Path) -> Found:
    """So many processes run the same command. In every second round one is killed on the way."""
    place = root / f"{scene.name.replace(' ', '-')}-{count}-at-once-{round_}"
    shutil.copytree(scene.before, place)
    begun = [warm.begin(scene.command(place), place.with_name(f"{place.name}-{n}"), wait=True) for n in range(count)]
    for one in begun:
        one.go()
    killed = round_ % 2 == 1
    if killed:
        time.sleep(0.01 * (round_ % 20))
        os.kill(begun[round_ % count].pid, signal.SIGKILL)
    ended = [one.end() for one in begun]
    wrong = []
    for one in ended:
        if isinstance(scene, CacheScene):
            right = scene.is_right(one)
        else:
            right = one.code in (0, IndexBusy.exit_code) and (one.code == 0) == ("already running" not in one.stderr)
        if not right and not (killed and one.code == -signal.SIGKILL):
            wrong.append(f"{count} at once, round {round_}: {one}")
    worked = any(one.code in (0, 1) for one in ended)
    if not worked and not killed:
        wrong.append(f"{count} at once, round {round_}: none worked")
    return judge(scene, place, 0 if worked else IndexBusy.exit_code, wrong)


def readers(
    root: Path, states: Sequence[State], builds: int, compact_every: int, prepare: Callable[[], None] | None = None
) -> tuple[int, int, list[str]]:
    """How many reads of all there is and how many single answers were checked while an index was built to and fro,
    and what was wrong. Two readers open the index anew each time; one keeps it open, as a server does."""
    articles, index = [root / f"state{n}" for n in range(len(states))], root / "busy"
    allowed: set[str] = set()
    answers: list[set[str]] = [set() for _ in QUESTIONS]
    for n, state in enumerate(states):
        build(write(articles[n], state), root / f"whole{n}", encoder=ENCODER)
        allowed.add(signature(root / f"whole{n}"))
        with KnowledgeBase.open(root / f"whole{n}", encoder=ENCODER) as base:
            for known, question in zip(answers, QUESTIONS, strict=True):
                known.add(repr(answer(base.search(question))))
    build(articles[0], index, encoder=ENCODER)
    stop = root / "stop"
    read: list[Callable[[], int]] = [lambda: _read_anew(index, allowed, stop)] * 2
    read.append(lambda: _read_on(index, answers, stop))
    children = [_forked(one, root / f"reader{n}", nice=10) for n, one in enumerate(read)]

    def builder() -> int:
        if prepare:
            prepare()
        way = [*range(1, len(states)), *range(len(states) - 2, -1, -1)]  # to the last state and back
        for n in range(builds):
            compact = bool(compact_every) and n % compact_every == 0
            build(articles[way[n % len(way)]], index, encoder=ENCODER, compact=compact)
            if prepare and any(path.exists() for path in root.glob("reader*")):
                break  # caught
        return builds

    building = _forked(builder, root / "builder")
    told = [_ended(building, root / "builder")]
    stop.touch()
    told += [_ended(child, root / f"reader{n}") for n, child in enumerate(children)]
    wrong = [str(one) for one in told if not isinstance(one, int)]
    counts = [one if isinstance(one, int) else 0 for one in told]
    return counts[1] + counts[2], (counts[1] + counts[2]) * len(QUESTIONS) + counts[3], wrong


def _read_anew(index: Path, allowed: set[str], stop: Path) -> int:
    vars(importlib.import_module("kb.index.follow"))["LOOK_EVERY_S"] = float("inf")  # one read, one snapshot
    reads = 0
    while not stop.exists():
        found = signature(index)
        if found not in allowed:
            raise AssertionError(f"mixed: {found} after {reads} reads")
        reads += 1
    return reads


def _read_on(index: Path, answers: list[set[str]], stop: Path) -> int:
    vars(importlib.import_module("kb.index.follow"))["LOOK_EVERY_S"] = 0.02
    asked = 0
    seen: set[str] = set()
    with KnowledgeBase.open(index, encoder=ENCODER) as base:
        while not stop.exists():
            for known, question in zip(answers, QUESTIONS, strict=True):
                found = base.search(question)
                seen.add(found.snapshot)
                if repr(answer(found)) not in known:
                    raise AssertionError(f"mixed: {answer(found)} to {question!r} after {asked} questions")
                asked += 1
    if len(seen) < 2:
        raise AssertionError("the reader that stays never saw another state")
    return asked


def _forked(work: Callable[[], int], report: Path, *, nice: int = 0) -> int:
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    os.nice(nice)  # readers ask without a pause, and are to leave time to build
    try:
        told: object = work()
    except BaseException as error:
        told = f"{error!r}: {traceback.format_exc().splitlines()[-2].strip()}"
    report.with_suffix(".part").write_text(json.dumps(told))
    report.with_suffix(".part").rename(report)
    os._exit(0)


def _ended(child: int, report: Path) -> object:
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(report.read_text()) if report.exists() else f"{report.name} died ({code})"
