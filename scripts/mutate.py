"""Do the tests notice when the code is wrong? Changes one place of it at a time and runs the tests of that module.

    python scripts/mutate.py [MODULE ...] [--sample 40] [--minutes M] [--quick] [--seed 0] [--jobs 2] [--timeout 300]

MODULE is a path or a pattern such as `kb/search/*.py`; without any, those of `MODULES`. A mutant is killed when a test
fails or runs out of time, and survives when all pass. Always tried are the mutants of `FIXED`, which once survived; the
others are drawn at random from all the places where an operator, a constant, a condition, a returned value or a
statement can be changed. Each runs in a copy of the repository. `--quick` asks only the tests of a default run, and
none of `FIXED`, which need the others (`KB_TEST_THOROUGH`). Tests that fail without any change are left out and named
first; a module whose tests are all skipped here (no browser) is left out, too. Exit code 1 where a mutant of `FIXED`
survives or its place is gone.
"""

from __future__ import annotations

import argparse
import ast
import copy
import itertools
import math
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).parent.parent
MODULES = ("kb/search/*.py", "kb/index/*.py", "kb/logs/*.py", "kb/scan/*.py", "kb/serve/guards.py")

# Which tests know a module: the first entry whose start fits. The quick ones first, for the first failure ends a run.
TESTS: dict[str, tuple[str, ...]] = {
    "kb/search/": (
        "tests/test_bounds.py",
        "tests/test_store.py",
        "tests/test_search.py",
        "tests/test_evidence.py",
        "tests/test_verdicts.py",
        "tests/content/test_retrieval.py",
    ),
    "kb/index/locate.py": ("tests/test_locate.py", "tests/test_bounds.py", "tests/test_build.py"),
    "kb/index/trust.py": ("tests/test_locate.py", "tests/test_cli.py"),
    "kb/index/cache.py": ("tests/test_locate.py",),
    "kb/index/user.py": ("tests/test_locate.py",),
    "kb/index/fsck.py": ("tests/test_snapshot.py", "tests/test_cli.py", "tests/test_locate.py"),
    "kb/index/follow.py": ("tests/test_follow.py", "tests/test_server.py"),
    "kb/index/postings.py": ("tests/test_postings.py", "tests/test_store.py", "tests/test_segments.py"),
    "kb/index/terms.py": ("tests/test_postings.py", "tests/test_store.py"),
    "kb/index/maxscore.py": ("tests/test_postings.py", "tests/test_segments.py"),
    "kb/index/vectors.py": ("tests/test_vectors.py", "tests/test_segments.py", "tests/test_store.py"),
    "kb/index/interrupts.py": ("tests/test_processes.py", "tests/test_build.py"),
    "kb/index/processes.py": ("tests/test_processes.py", "tests/test_build.py"),
    "kb/index/prints.py": ("tests/test_fingerprints.py", "tests/test_store.py"),
    "kb/index/": (
        "tests/test_store.py",
        "tests/test_snapshot.py",
        "tests/test_segments.py",
        "tests/test_build.py",
        "tests/test_bounds.py",
    ),
    "kb/logs/fingerprints.py": ("tests/test_fingerprints.py", "tests/test_scan.py"),
    "kb/logs/": (
        "tests/test_classify.py",
        "tests/test_signature.py",
        "tests/articles/test_error_lines.py",
        "tests/test_bounds.py",
        "tests/test_scan.py",
        "tests/content/test_scanning.py",
        "tests/articles/test_own_form.py",
    ),
    "kb/search/explain.py": ("tests/test_explain.py",),
    "kb/scan/fingerprints.py": ("tests/test_fingerprints.py", "tests/test_scan.py"),
    "kb/scan/": ("tests/test_bounds.py", "tests/test_scan.py", "tests/content/test_scanning.py"),
    "kb/serve/page/": ("tests/test_page.py",),
    "kb/serve/": ("tests/test_server.py",),
}

# file, pattern, replacement: changes that the tests did not notice once
FIXED = (
    ("kb/search/verdict.py", r"^KNOWN_AT = 0\.5$", "KNOWN_AT = 0.56"),
    ("kb/search/features.py", r"^_CANDIDATES = \d+", "_CANDIDATES = 5"),
    ("kb/search/features.py", r"in \(query\.signatures or", "in (query.signatures[:1] or"),
    ("kb/search/searcher.py", r"for line in record\.errors\]$", "for line in record.errors[:1]]"),
    ("kb/index/locate.py", r'^(READS_ARTICLES = .*)"text", ', r"\1"),
    ("kb/scan/scanner.py", r"^ALONE = 1\.35", "ALONE = 1.0"),
    ("kb/scan/scanner.py", r"^ALONE = 1\.35", "ALONE = 1.6"),
    ("kb/serve/page/parts.js", r"return /\^https\?.*;", "return true;"),
)


@dataclass(frozen=True)
class Mutant:
    path: str
    what: str
    """the line and the change, for people"""
    source: str
    """the whole changed file"""


# --- mutants --------------------------------------------------------------------------------------------------------

_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing wrong; None where nothing of it is to be changed. The node itself stays as it is."""
    other = copy.copy(node)
    if isinstance(other, ast.Compare) and type(other.ops[0]) in _OTHER:
        other.ops = [_OTHER[type(other.ops[0])](), *other.ops[1:]]  # type: ignore[list-item]
    elif isinstance(other, (ast.BoolOp, ast.BinOp, ast.AugAssign)) and type(other.op) in _OTHER:
        other.op = _OTHER[type(other.op)]()  # type: ignore[assignment]
    elif isinstance(other, ast.Constant) and isinstance(other.value, bool):
        other.value = not other.value
    elif isinstance(other, ast.Constant) and isinstance(other.value, (int, float)):
        other.value += 1 if isinstance(other.value, int) else 0.25 * (other.value or 1.0)
    elif isinstance(other, ast.UnaryOp) and isinstance(other.op, ast.Not):
        return other.operand
    elif isinstance(other, ast.Return) and not (other.value is None or ast.unparse(other.value) == "None"):
        other.value = ast.Constant(None)
    elif isinstance(other, ast.Expr) and isinstance(other.value, ast.Call):
        return ast.Pass()
    else:
        return None
    return other


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.AST]]:
    """Each node that can be changed, as (parent, field, position in the field if that is a list, node). Left alone are
    annotations, which nothing runs, and what decorators are given: a dataclass with other slots does the same."""
    decorated = {node for one in ast.walk(tree) for top in getattr(one, "decorator_list", ()) for node in ast.walk(top)}
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if field in ("annotation", "returns") or parent in decorated:
                continue
            for at, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.AST) and changed(node) is not None:
                    yield parent, field, at, node


def mutants_of(paths: list[str], wanted: int, chance: random.Random) -> list[Mutant]:
    """At most `wanted` mutants, drawn at random from all places of all files."""
    everywhere = [
        (path, number) for path in paths for number, _ in enumerate(places(ast.parse((ROOT / path).read_text("utf-8"))))
    ]
    return [mutant_of(path, number) for path, number in chance.sample(everywhere, min(wanted, len(everywhere)))]


def mutant_of(path: str, number: int) -> Mutant:
    """The file with its place of that number changed."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    parent, field, at, node = next(itertools.islice(places(tree), number, None))
    other = changed(node)
    assert other is not None
    if at is None:
        setattr(parent, field, other)
    else:
        getattr(parent, field)[at] = other
    before, after = (ast.unparse(ast.fix_missing_locations(one)).partition("\n")[0] for one in (node, other))
    line = getattr(node, "lineno", 0)
    return Mutant(path, f"{path}:{line}: {before} -> {after}", ast.unparse(tree) + "\n")


def fixed_mutants() -> Iterator[Mutant | str]:
    """Those of FIXED, or what to say of one whose place is gone."""
    for path, pattern, replacement in FIXED:
        source = (ROOT / path).read_text("utf-8") if (ROOT / path).is_file() else ""
        text, times = re.subn(pattern, replacement, source, count=1, flags=re.MULTILINE)
        yield Mutant(path, f"{path}: {pattern} -> {replacement}", text) if times else f"{path}: no {pattern} any more"


NOT_TRIED = "not tried"

# --- runs -----------------------------------------------------------------------------------------------------------


def tests_of(path: str) -> tuple[str, ...]:
    names = next((names for start, names in TESTS.items() if path.startswith(start)), ("tests",))
    return tuple(name for name in names if (ROOT / name).exists())


def copy_of_the_repository(folder: Path) -> Path:
    ignored = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
    return Path(shutil.copytree(ROOT, folder / "repository", ignore=ignored))


def run_tests(tree: Path, *arguments: str, timeout: float) -> tuple[int, list[str]]:
    """The exit code of pytest, and the tests that failed. Raises TimeoutExpired."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    process = subprocess.Popen(
        command, cwd=tree, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        out, _ = process.communicate(timeout=timeout)
    finally:
        process.kill()
        process.wait()
    return process.returncode, re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out, re.MULTILINE)


def unchanged(names: tuple[str, ...], trees: Queue[Path], timeout: float) -> list[str] | None:
    """The tests that fail without any change; None where none can run."""
    tree = trees.get()
    try:
        code, failed = run_tests(tree, *names, timeout=2 * timeout)
    finally:
        trees.put(tree)
    return failed if code in (0, 1) else None


def try_mutant(mutant: Mutant, without: list[str], trees: Queue[Path], timeout: float, until: float) -> str | None:
    """What noticed it; None when nothing did, and NOT_TRIED after `until`."""
    if time.monotonic() > until:
        return NOT_TRIED
    tree = trees.get()
    file = tree / mutant.path
    before = file.read_bytes()
    try:
        file.write_text(mutant.source, "utf-8")
        left_out = [f"--deselect={name}" for name in without]
        code, failed = run_tests(tree, "-x", *left_out, *tests_of(mutant.path), timeout=timeout)
        return None if code == 0 else failed[0] if failed else f"exit code {code}"
    except subprocess.TimeoutExpired:
        return "out of time"
    finally:
        file.write_bytes(before)
        trees.put(tree)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=MODULES, metavar="MODULE")
    parser.add_argument("--sample", type=int, default=40, help="how many random mutants in all (40)")
    parser.add_argument("--minutes", type=float, default=math.inf, help="after so many no other one is begun")
    parser.add_argument("--quick", action="store_true", help="only the tests of a default run, and none of FIXED")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the tests of one mutant (300)")
    options = parser.parse_args()

    os.environ["KB_TEST_THOROUGH"] = str(int(not options.quick))
    paths = sorted({str(path.relative_to(ROOT)) for one in options.modules for path in ROOT.glob(one)})
    if not paths:
        parser.error("no such module")
    chance = random.Random(options.seed)
    chosen = mutants_of(paths, options.sample, chance)
    known = list(fixed_mutants())
    gone = [one for one in known if isinstance(one, str)]
    fixed = [one for one in known if isinstance(one, Mutant) and tests_of(one.path)]
    if list(options.modules) != list(MODULES):
        fixed = [one for one in fixed if one.path in paths]
    fixed = [] if options.quick else fixed
    mutants = fixed + chosen

    started = time.monotonic()
    until = started + 60 * options.minutes
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        trees: Queue[Path] = Queue()
        for number in range(options.jobs):
            trees.put(copy_of_the_repository(Path(folder, str(number))))
        groups = list({tests_of(one.path) for one in mutants})
        broken = dict(
            zip(groups, pool.map(lambda names: unchanged(names, trees, options.timeout), groups), strict=True)
        )
        for names, failed in broken.items():
            for what in ["no test can run here"] if failed is None else failed:
                print(f"left out  {what}  ({', '.join(names)})", flush=True)
        mutants = [one for one in mutants if broken[tests_of(one.path)] is not None]
        survived = []
        noticed = pool.map(
            lambda one: try_mutant(one, broken[tests_of(one.path)] or [], trees, options.timeout, until), mutants
        )
        tried = 0
        for mutant, why in zip(mutants, noticed, strict=True):
            if why == NOT_TRIED:
                continue
            tried += 1
            print(f"{'killed  ' if why else 'SURVIVED'}  {mutant.what}{f'  by {why}' if why else ''}", flush=True)
            if not why:
                survived.append(mutant)
    for one in gone:
        print("gone      " + one)
    seconds = time.monotonic() - started
    print(f"{tried - len(survived)} killed, {len(survived)} survived of {tried} in {seconds:.0f} s")
    return int(bool(gone) or any(one in survived for one in fixed))


if __name__ == "__main__":
    sys.exit(main())
