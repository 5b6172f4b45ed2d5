"""Every file of an index is damaged in every way, and asked: an error that says so, or the right answer; never another.

All damages of a file are tried in a process of its own, so that a crash of a library is seen and told.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from kb.errors import KbError
from kb.index.build import build
from kb.index.fsck import check_index
from kb.index.snapshot import MANIFEST, read_manifest
from torn.corpus import ENCODER, signature
from torn.faults import Scene

FLIPS, CUTS = 200, 50
_PATIENCE_S = 60
Damage = tuple[str, bytes | None]
"""what it is, and the bytes of the file then; None: it is gone"""


def damages(data: bytes, others: list[bytes], flips: int, cuts: int) -> Iterator[Damage]:
    chance = random.Random(len(data))
    yield "missing", None
    yield "empty", b""
    yield "zeros", bytes(len(data))
    yield "random bytes", chance.randbytes(len(data))
    yield "a byte more", data + b"\0"
    yield "twice", data * 2
    for n, other in enumerate(others):
        yield f"swapped with another ({n})", other
    if not data:
        return
    for length in sorted({len(data) // 2, len(data) - 1, *(chance.randrange(len(data)) for _ in range(cuts - 2))}):
        yield f"cut to {length} bytes", data[:length]
    for _ in range(flips):
        bit = chance.randrange(8 * len(data))
        yield f"bit {bit} flipped", data[: bit // 8] + bytes([data[bit // 8] ^ (1 << bit % 8)]) + data[bit // 8 + 1 :]


def try_file(
    scene: Scene, name: str, root: Path, flips: int, cuts: int, prepare: Callable[[], None] | None = None
) -> tuple[Counter[str], list[str]]:
    """Every damage of one file of the scene's old index. How often it was refused, harmless, and mended by a build;
    and what was wrong."""
    place = root / f"damaged-{name}"
    report = root / f"damaged-{name}.report"
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = 1
        try:
            if prepare:
                prepare()
            shutil.copytree(scene.before, place)
            with report.open("w", buffering=1) as told:
                _try(scene, place / "index" / name, flips, cuts, lambda *line: print(json.dumps(line), file=told))
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
    shutil.rmtree(place, ignore_errors=True)
    report.unlink(missing_ok=True)
    counts, wrong, last = Counter[str](), [], ""
    for kind, what in lines:
        if kind == "trying":
            last = what
        elif kind == "wrong":
            wrong.append(f"{name}, {what}")
        counts[kind] += 1
    if code:
        wrong.append(f"{name}, {last}: {'hung' if code == -signal.SIGALRM else f'the process ended with {code}'}")
    return counts, wrong


def _try(scene: Scene, path: Path, flips: int, cuts: int, tell: Callable[[str, str], None]) -> None:
    index, data = path.parent, path.read_bytes()
    named = {MANIFEST, *(entry["name"] for entry in read_manifest(index)[0]["files"].values())}
    others = [other.read_bytes() for other in _others(path)]
    for what, damaged in damages(data, others, flips, cuts):
        if damaged is not None and damaged.rstrip() == data.rstrip():  # the line end of a manifest
            continue
        signal.alarm(_PATIENCE_S)
        tell("trying", what)
        path.unlink(missing_ok=True)
        if damaged is not None:
            path.write_bytes(damaged)
        if path.name in named:
            _open(scene, path, what, tell)
        # What no manifest names only a build can meet.
        if path.name not in named or what in ("missing", "empty", f"cut to {len(data) // 2} bytes"):
            _mend(scene, index, what, tell)
        path.unlink(missing_ok=True)
        path.write_bytes(data)


def _open(scene: Scene, path: Path, what: str, tell: Callable[[str, str], None]) -> None:
    index = path.parent
    try:
        if signature(index) != scene.old:
            tell("wrong", f"{what}: other answers")
        elif check_index(index):
            tell("harmless", what)
        else:
            tell("wrong", f"{what}: not noticed by `kb check --index`")
    except KbError as error:
        tell("refused", what)
        if path.name not in str(error) and str(index) not in str(error):
            tell("wrong", f"{what}: the message does not say where: {error}")
    except Exception as error:
        tell("wrong", f"{what}: {error!r}")


def _mend(scene: Scene, index: Path, what: str, tell: Callable[[str, str], None]) -> None:
    """The next build, over a copy of what lies there."""
    copy = index.with_name("mended")
    shutil.copytree(index, copy)
    try:
        build(scene.articles, copy, encoder=ENCODER)
        wrong = [str(one) for one in check_index(copy)]
        wrong += [] if signature(copy) == scene.new else ["other answers"]
        counts = read_manifest(copy)[0]["counts"]
        wrong += [f"counted {counts}" for name in scene.counts if counts[name] != scene.counts[name]]
    except Exception as error:
        wrong = [repr(error)]
    shutil.rmtree(copy)
    for one in wrong:
        tell("wrong", f"{what}: after the next build: {one}")
    if not wrong:
        tell("mended", what)


def _others(path: Path) -> list[Path]:
    """Two other files of the index: one of the same kind where there is one, and the next one."""
    kind = path.name.partition("-")[0]
    there = sorted(other for other in path.parent.iterdir() if other.name != path.name and "-" in other.name)
    same = [other for other in there if other.name.startswith(f"{kind}-")]
    return [*same[:1], *(other for other in there if other not in same)][:2]
