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
from functools import partial
from pathlib import Path

from kb.base import KnowledgeBase
from kb.errors import IndexBusy
from kb.index.build import build
from torn import warm
from torn.corpus import ENCODER, QUESTIONS, State, answer, records, write
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
) -> tuple[int, int, int, list[str]]:
    """How many reads of all there is, how many single answers, and of how many snapshots, while an index was built to
    and fro; and what was wrong. Two readers open the index anew each time, and must find all records of one of the
    states; one keeps it open, as a server does. Of one snapshot all must get the same answers, to the last digit."""
    articles, index, stop = [root / f"state{n}" for n in range(len(states))], root / "busy", root / "stop"
    allowed: set[str] = set()
    for n, state in enumerate(states):
        build(write(articles[n], state), root / f"whole{n}", encoder=ENCODER)
        with KnowledgeBase.open(root / f"whole{n}", encoder=ENCODER) as base:
            allowed.add(records(base))
    assert len(allowed) == len(states)
    build(articles[0], index, encoder=ENCODER)
    reads = [partial(_read_anew, index, allowed, stop)] * 2 + [partial(_read_on, index, stop)]
    children = [_forked(one, root / f"reader{n}", nice=3) for n, one in enumerate(reads)]
    way = [*range(1, len(states)), *range(len(states) - 2, -1, -1)]  # to the last state and back

    def builder() -> object:
        if prepare:
            prepare()
        for n in range(builds):
            compact = bool(compact_every) and n % compact_every == 0
            build(articles[way[n % len(way)]], index, encoder=ENCODER, compact=compact)
            if prepare and any((root / f"reader{n}").exists() for n in range(3)):
                break  # caught
        return builds

    told = [_ended(_forked(builder, root / "builder"), root / "builder")]
    stop.touch()
    told += [_ended(child, root / f"reader{n}") for n, child in enumerate(children)]
    wrong = [one for one in told if isinstance(one, str)]
    known: dict[str, str] = {}
    for _, _, seen in (one for one in told if isinstance(one, list)):
        wrong += [
            f"mixed: two answers of one snapshot, {key}" for key in seen if known.get(key, seen[key]) != seen[key]
        ]
        known |= seen
    counts = [one if isinstance(one, list) else (0, 0, {}) for one in told[1:]]
    snapshots = {key.partition(" ")[0] for key in known}
    return sum(one[0] for one in counts), sum(one[1] for one in counts), len(snapshots), wrong


Read = tuple[int, int, dict[str, str]]
"""reads of all records, answers, and what they were: snapshot and number of the question -> answer"""


def _read_anew(index: Path, allowed: set[str], stop: Path) -> Read:
    vars(importlib.import_module("kb.index.follow"))["LOOK_EVERY_S"] = float("inf")  # one read, one snapshot
    reads, seen = 0, dict[str, str]()
    while not stop.exists():
        with KnowledgeBase.open(index, encoder=ENCODER) as base:
            if records(base) not in allowed:
                raise AssertionError(f"mixed: records of no state, after {reads} reads")
            _ask(base, seen)
        reads += 1
    return reads, reads * len(QUESTIONS), seen


def _read_on(index: Path, stop: Path) -> Read:
    vars(importlib.import_module("kb.index.follow"))["LOOK_EVERY_S"] = 0.02
    rounds, seen = 0, dict[str, str]()
    with KnowledgeBase.open(index, encoder=ENCODER) as base:
        while not stop.exists():
            _ask(base, seen)
            rounds += 1
            if base.stale:
                raise AssertionError(f"the reader that stays was left behind: {base.stale}")
    if rounds > 50 and len({key.partition(" ")[0] for key in seen}) < 2:
        raise AssertionError("the reader that stays never saw another state")
    return 0, rounds * len(QUESTIONS), seen


def _ask(base: KnowledgeBase, seen: dict[str, str]) -> None:
    for number, question in enumerate(QUESTIONS):
        found = base.search(question)
        said = answer(found)
        if seen.setdefault(f"{found.snapshot} {number}", said) != said:
            raise AssertionError(f"mixed: two answers of one snapshot to {question!r}")


def _forked(work: Callable[[], object], report: Path, *, nice: int = 0) -> int:
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
