"""Bytes that nobody would write, for every reader of untrusted bytes: only a `KbError` may come out, and soon.

    python scripts/nightly/fuzz.py TARGET --seconds 30 [--seed 0] [--plain]

With atheris (`pip install atheris`) libFuzzer is led by the branches that it reaches; else, or with `--plain`, known
good files are changed at random. Prints the number of runs as JSON, or what went wrong as a traceback with the input,
and exits with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from outcome import Outcome

if __name__ == "__main__" and "--plain" not in sys.argv and importlib.util.find_spec("atheris"):
    import atheris

    atheris.instrument_imports(include=["kb"]).__enter__()  # of all that is imported from here on; all of Python: 40 s

from kb.base import KnowledgeBase
from kb.config import read_settings
from kb.errors import KbError
from kb.feedback.store import Feedback
from kb.importers.body import read_body
from kb.importers.posts import read_posts
from kb.importers.wording import read_words
from kb.index import snapshot
from kb.logs.read import read
from kb.scan import Scanner
from kb.scraped import parse
from kb.text import clean, visible

ROOT = Path(__file__).parent.parent.parent
CORPUS, CASES = ROOT / "tests" / "corpus", ROOT / "tests" / "cases"
MOST_BYTES = 20_000
PATIENCE_S = 5.0  # CPU time for one input
TOO_LONG = "an input took"
SHORTEST_S = 8.0  # the time of a target, of which its start takes some seconds

Target = Callable[[bytes], object]


@contextlib.contextmanager
def base() -> Iterator[tuple[Path, KnowledgeBase]]:
    with tempfile.TemporaryDirectory(prefix="kb-fuzz-") as name:
        folder = Path(name)
        KnowledgeBase.build(CORPUS, folder / "index")
        with KnowledgeBase.open(folder / "index") as opened:
            yield folder, opened


def articles() -> list[bytes]:
    return [path.read_bytes() for path in sorted(CORPUS.glob("*/*.md"))]


def logs() -> list[bytes]:
    paths = [*sorted((CASES / "healthy").glob("*.log")), *sorted((CASES / "world" / "logs").rglob("*.log"))]
    return [path.read_bytes()[-MOST_BYTES:] for path in paths]


def threads() -> list[bytes]:
    return [one.encode() for one in re.split(r"\n={3,}.*\n", (CASES / "import" / "threads.txt").read_text("utf-8"))]


def answers(folder: Path, opened: KnowledgeBase) -> Callable[[Path], None]:
    """Opens an index and asks it."""

    def ask(index: Path) -> None:
        with KnowledgeBase.open(index) as other:
            for hit in other.search("IndexError: pop from an empty deque").hits:
                if not (math.isfinite(hit.score) and math.isfinite(hit.confidence)):
                    raise AssertionError(f"a score of {hit.score}")
            for record in other.records():
                str(record.as_dict())

    return ask


@contextlib.contextmanager
def target(name: str) -> Iterator[tuple[Target, list[bytes]]]:
    """What is fed, and known good inputs."""
    with base() as (folder, opened):
        scanner, index = Scanner(opened.searcher), folder / "index"
        manifest = (index / "manifest.json").read_bytes()
        ask = answers(folder, opened)
        (folder / "home").mkdir()
        os.environ["KB_CONFIG_DIR"] = os.environ["XDG_CONFIG_HOME"] = str(folder / "home")

        def manifest_is(data: bytes) -> None:
            (index / "manifest.json").write_bytes(data)
            ask(index)

        def a_file_is(data: bytes) -> None:
            """The first byte says which, and the manifest agrees with it: what a forger would do."""
            whole = json.loads(manifest)
            del whole["sha256"]
            entries = list(entries_of(whole))
            entry = entries[data[0] % len(entries)] if data else entries[0]
            digest = hashlib.sha256(data[1:]).hexdigest()
            stem, _, suffix = entry["name"].rpartition("-")[0], "", entry["name"].rpartition(".")[2]
            entry.update(name=f"{stem}-{digest[:12]}.{suffix}", bytes=len(data) - 1 if data else 0, sha256=digest)
            (index / entry["name"]).write_bytes(data[1:])
            try:
                manifest_is(json.dumps({**whole, "sha256": snapshot._digest(whole)}).encode())
            finally:
                (index / entry["name"]).unlink()

        def settings_are(data: bytes) -> None:
            (folder / "home" / "kb-issues").mkdir(exist_ok=True)
            for place in (folder / "home", folder / "home" / "kb-issues"):
                (place / "kb.toml").write_bytes(data)
            read_settings(folder)

        def votes_are(data: bytes) -> None:
            path = folder / "feedback.db"
            path.write_bytes(data)
            store = Feedback(path)
            try:
                store.vote("bundled", "a#1", None, store.person("user 1"), helped=True)
            finally:
                store.close()
                path.unlink()

        def a_log_is(data: bytes) -> None:
            report = scanner.scan([data[: len(data) // 2], data[len(data) // 2 :]])
            for finding in report.findings:
                visible(str(finding))

        def texts(data: bytes) -> str:
            return data.decode("utf-8", "replace")

        Feedback(folder / "good.db").vote("bundled", "a#1", None, "somebody", helped=True)
        files = [
            bytes([n]) + (index / entry["name"]).read_bytes()
            for n, entry in enumerate(entries_of(json.loads(manifest)))
        ]
        yield {
            "article": (lambda data: parse(data, path="en/a.md"), articles()),
            "page": (lambda data: parse(data, path="notes/page.md", every_question=True), [*articles(), *threads()]),
            "mdx": (lambda data: parse(data, path="en/a.mdx"), articles()),
            "thread": (
                lambda data: [read_body(texts(data)), read_posts(texts(data)), read_words(texts(data))],
                threads(),
            ),
            "log": (a_log_is, logs()),
            "failure": (lambda data: read(clean(texts(data)), printed=True), logs()),
            "question": (lambda data: opened.search(texts(data)), logs()),
            "manifest": (manifest_is, [manifest]),
            "index file": (a_file_is, files),
            "settings": (settings_are, [b'lang = "zh"\n[search]\nknown-at = 0.6\n[bases.team]\nindex = "notes"\n']),
            "feedback": (votes_are, [(folder / "good.db").read_bytes()]),
            "raises": (lambda data: data.decode("ascii"), articles()),
            "takes long": (_taking_long, articles()),
        }[name]


BROKEN: Mapping[str, str] = {"raises": "crashed", "takes long": "hung"}
TARGETS = [*"article page mdx thread log failure question manifest settings feedback".split(), "index file"]


def _taking_long(data: bytes) -> None:
    until = time.process_time() + PATIENCE_S + 0.1
    while time.process_time() < until:
        pass


def entries_of(value: Any) -> Iterator[dict[str, Any]]:
    """Every entry of a manifest for a file."""
    if isinstance(value, dict):
        if {"name", "bytes", "sha256"} <= value.keys():
            yield value
        for one in value.values():
            yield from entries_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from entries_of(one)


# --- inputs -----------------------------------------------------------------------------------------------------------

MARKS = ("```", "~~~", "---\n", "# ", "## Fix\n", "### ", "| a |", "> ", "<details>", "<!--", "](", "$$", "\\", "解决")
WORDS = ("Error: ", "Traceback (most recent call last):\n", '  File "a.py", line 7\n', "../../etc/passwd", "%s", "{0}")
NUMBERS = ("-1", "1e999", "NaN", "null", "9" * 40, "{", "[", '"', "a" * 300, " " * 300, "\n" * 99)
RAW = (
    b"\0",
    b"\x1b[2J",
    b"\xe2\x80\xae",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\r\n",
    b"\t",
    b"\xe4\xb8",
    b"\xf0\x9f",
)
SPICE = [*(one.encode() for one in (*MARKS, *WORDS, *NUMBERS)), *RAW]


def changed(data: bytes, others: list[bytes], draw: random.Random) -> bytes:
    """Some changes of a known good input."""
    for _ in range(draw.choice([1, 1, 2, 4, 16])):
        at, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        match draw.randrange(8):
            case 0:
                data = data[:at] + bytes([draw.randrange(256)]) + data[at + 1 :]
            case 1:
                data = data[:at] + data[end:]
            case 2:
                data = data[:end] + data[at:end] * draw.choice([1, 2, 9, 99]) + data[end:]
            case 3 | 4:
                data = data[:at] + draw.choice(SPICE) * draw.choice([1, 1, 2, 50]) + data[at:]
            case 5:
                other = draw.choice(others)
                cut = draw.randrange(len(other) + 1)
                data = data[:at] + other[cut : cut + end - at]
            case 6:
                data = data[:at]
            case _:
                lines = data.splitlines(keepends=True)
                draw.shuffle(lines)
                data = b"".join(lines)
        data = data[:MOST_BYTES]
    return data


def fed(feed: Target, data: bytes) -> None:
    """Raises what `feed` raises but for a `KbError`, and AssertionError when it takes too long."""
    started = time.process_time()
    with contextlib.suppress(KbError):
        feed(data)
    took = time.process_time() - started
    if took > PATIENCE_S:
        raise AssertionError(f"{TOO_LONG} {took:.1f} s")


def plainly(feed: Target, good: list[bytes], seconds: float, seed: int) -> int:
    """Returns how many inputs were fed."""
    draw, until, runs = random.Random(seed), time.monotonic() + seconds, 0
    while time.monotonic() < until:
        data = changed(draw.choice(good)[:MOST_BYTES], good, draw)
        try:
            fed(feed, data)
        except Exception:
            traceback.print_exc()
            print(f"input: {data[:2000]!r}", file=sys.stderr)
            raise SystemExit(1) from None
        runs += 1
    return runs


def by_branches(feed: Target, good: list[bytes], seconds: float, seed: int) -> None:
    """With libFuzzer, which ends the process."""
    with tempfile.TemporaryDirectory() as name:
        for n, data in enumerate(good):
            (Path(name) / str(n)).write_bytes(data)
        options = [
            f"-max_total_time={int(seconds)}",
            f"-seed={seed + 1}",
            f"-max_len={MOST_BYTES}",
            f"-artifact_prefix={name}/",
        ]
        atheris.Setup([sys.argv[0], *options, name], lambda data: fed(feed, data))
        atheris.Fuzz()


# --- as a part of the nightly run -------------------------------------------------------------------------------------


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """Each target for its share of the time, in a process of its own; what one takes too long, the next ones lack."""
    outcome, until = Outcome(), time.monotonic() + seconds
    names = [broken] if broken else TARGETS
    for number, name in enumerate(names):
        share = max((until - time.monotonic()) / (len(names) - number), SHORTEST_S)
        command = [sys.executable, __file__, name, "--seconds", str(share), "--seed", str(seed)]
        with tempfile.TemporaryDirectory(prefix="kb-fuzz-") as folder:  # libFuzzer leaves its files behind
            environment = {**os.environ, "TMPDIR": folder}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
        ran = re.findall(
            r'"runs": (\d+)|^Done (\d+)|^stat::number_of_executed_units: (\d+)', done.stdout + done.stderr, re.M
        )
        outcome.tried["inputs"] += int(next(filter(None, ran[-1]))) if ran else bool(done.returncode)
        if done.returncode or not ran:
            said = done.stderr + done.stdout
            outcome.note("hung" if TOO_LONG in said else "crashed", f"{name}: {said[-3000:]}")
    return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, *BROKEN])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without atheris")
    args = parser.parse_args()
    started = time.monotonic()
    with target(args.target) as (feed, good):
        args.seconds = max(args.seconds - (time.monotonic() - started), 2.0)
        if importlib.util.find_spec("atheris") and not args.plain:
            by_branches(feed, good, args.seconds, args.seed)
        print(json.dumps({"runs": plainly(feed, good, args.seconds, args.seed)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
