"""Kill a real `kb build` at every step, let the disk fail at every step, and read while it builds: is it ever torn?

    python scripts/crash.py [--builds 300] [--segments] [--self-test]

A build from an old state of 20 articles to a new one is traced by strace, and run again for each of its writes, syncs,
renames and removals: once killed there, once with ENOSPC and once with EIO as the answer; then under file size limits
and, where mounting is allowed, on nearly full disks. After each, a signature of the index (all records, and what 20
questions find) must be that of the old state or of the new one, and the next build must leave exactly the new one. At
last readers ask without a pause while an index is built to and fro. `--segments` does all of it with an index of many
small segments, which a build adds to, marks as dead and joins, as in a base of a million records. `--self-test` builds
with a writer that writes files in place: the harness must complain. Exits with 1 when anything was torn, with 77 when
strace is missing.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from kb.base import KnowledgeBase
from kb.encoders import open_encoder
from kb.errors import IndexWriteFailed, KbError
from kb.index import pieces
from kb.index.build import build
from kb.index.snapshot import MANIFEST, read_manifest

ENCODER = open_encoder()
FAILURES = ("write", "pwrite64", "writev", "pwritev", "ftruncate", "fsync", "fdatasync", "sync_file_range", "fallocate")
NAMES = ("rename", "renameat", "renameat2", "link", "linkat", "unlink", "unlinkat")
TRACED = ",".join(f"?{call}" for call in (*FAILURES, *NAMES))  # "?": not every machine has every one
CALL = re.compile(r"^\d+ +(\w+)\((.*)", re.MULTILINE)
IN_PLACE = """
import sys
from kb.index import snapshot
def write(path, data):
    with path.open("wb") as file:
        file.write(data)
snapshot.write = write
from kb.cli import main
sys.argv = ["kb", *sys.argv[1:]]
main()
"""
SMALL = """
import sys
from kb.index import pieces
pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER = 0, 12, 3
if len(sys.argv) > 1:
    from kb.cli import main
    sys.argv = ["kb", *sys.argv[1:]]
    main()
"""
READ = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import crash
allowed, reads = set(sys.argv[3:]), 0
while not Path(sys.argv[2] + ".stop").exists():
    found = crash.signature(Path(sys.argv[2]))
    if found not in allowed:
        sys.exit(f"mixed: {found} after {reads} reads")
    reads += 1
print(reads)
"""


def article(errors: Sequence[str]) -> str:
    issues = [
        f"## Training stops with {e}\n\n### Symptom\n\nRuntimeError: {e}\n\n### Fix\n\nSet {e} to 1. 训练恢复。\n"
        for e in errors
    ]
    return "# Notes\n\n" + "\n".join(issues)


def write_articles(folder: Path, *, new: bool) -> Path:
    """20 articles; the new state has some edited, some gone, some more."""
    (folder / "articles" / "en").mkdir(parents=True)
    for n in range(20):
        errors = [f"failure {n} at stage {stage}" for stage in range(3)]
        if new and n % 5 == 0:
            continue
        if new and n % 3 == 0:
            errors.append(f"another failure {n}")
        name = f"b{n}" if new and n % 4 == 0 else f"a{n}"
        (folder / "articles" / "en" / f"{name}.md").write_text(article(errors), encoding="utf-8")
    return folder / "articles"


def signature(index: Path) -> str:
    """Of what a reader sees: every record, and what twenty questions find."""
    digest = hashlib.sha256()
    with KnowledgeBase.open(index, encoder=ENCODER) as base:
        for record in sorted(base.records(), key=lambda record: record.id):
            digest.update(json.dumps(record.as_dict()).encode())
        for n in range(20):
            found = base.search(f"RuntimeError: failure {n} at stage {n % 3}")
            # Scores of an index of several segments count dead records until these are joined.
            digest.update(repr([found.verdict, *(hit.issue for hit in found.hits[:1])]).encode())
    return digest.hexdigest()[:12]


def content(index: Path) -> dict[str, bytes]:
    """The index's bytes; the lock and the stamp hold a process number and a time."""
    return {path.name: path.read_bytes() for path in index.iterdir() if path.name not in (".lock", ".stamp")}


@dataclass(frozen=True)
class Case:
    call: str
    number: int
    fault: str
    """KILL, or an errno's name"""

    def __str__(self) -> str:
        return f"{self.fault} at {self.call} {self.number}"


class Harness:
    def __init__(self, root: Path, command: Sequence[str], *, segments: bool = False) -> None:
        self.root, self.command, self.segments = root, command, segments
        self.new_articles = write_articles(root / "new", new=True)
        self.old_index = root / "old.kb"
        build(write_articles(root / "old", new=False), self.old_index, encoder=ENCODER)
        build(self.new_articles, root / "new.kb", encoder=ENCODER)
        self.old, self.new = signature(self.old_index), signature(root / "new.kb")
        self.new_content = content(root / "new.kb")
        assert self.old != self.new

    def arguments(self, index: Path) -> list[str]:
        return [*self.command, "build", "--articles", str(self.new_articles), "--index", str(index)]

    def calls(self) -> Counter[str]:
        """What an undisturbed build calls, and how often. Writes to the terminal count, for they come in between."""
        index, log = self.root / "clean.kb", self.root / "clean.log"
        shutil.copytree(self.old_index, index)
        strace = ["strace", "-f", "-o", str(log), "-e", f"trace={TRACED}"]
        subprocess.run([*strace, *self.arguments(index)], check=True, capture_output=True)
        assert signature(index) == self.new
        return Counter(name for name, _ in CALL.findall(log.read_text(errors="replace")))

    def run(self, case: Case) -> tuple[str, list[str]]:
        """What was seen afterwards ("old" or "new"), and what is wrong with it."""
        index = self.root / f"{case.call}-{case.number}-{case.fault}.kb"
        log = index.with_suffix(".log")
        shutil.copytree(self.old_index, index)
        how = "signal=KILL" if case.fault == "KILL" else f"error={case.fault}"
        strace = ["strace", "-f", "-o", str(log), "-e", f"trace={TRACED}"]
        strace += ["-e", f"inject={case.call}:{how}:when={case.number}"]
        done = subprocess.run([*strace, *self.arguments(index)], capture_output=True, text=True)
        trace = log.read_text(errors="replace")
        log.unlink()
        wrong: list[str] = []
        if case.fault == "KILL":
            if "killed by SIGKILL" not in trace:
                wrong.append("was not killed")
        else:
            injected = [rest for _, rest in CALL.findall(trace) if "(INJECTED)" in rest]
            if not injected:
                wrong.append("the fault did not happen")
            on_terminal = bool(injected) and injected[0].startswith(("1,", "2,"))
            wrong += self.complaints(done, index, os.strerror(getattr(errno, case.fault)), strict=not on_terminal)
        return self.judge(index, done.returncode, wrong)

    def complaints(
        self, done: subprocess.CompletedProcess[str], index: Path, reason: str, *, strict: bool = True
    ) -> list[str]:
        """What is wrong with how a build that met a fault ended."""
        wrong = ["a traceback"] if "Traceback" in done.stderr and strict else []
        if strict and done.returncode not in (0, IndexWriteFailed.exit_code):
            wrong.append(f"exit code {done.returncode}")
        if done.returncode == IndexWriteFailed.exit_code and not (
            reason in done.stderr and (str(index) in done.stderr or "stdout" in done.stderr)
        ):
            wrong.append(f"the message does not say what and where: {done.stderr!r}")
        return wrong

    def judge(self, index: Path, exit_code: int, wrong: list[str]) -> tuple[str, list[str]]:
        seen = "torn"
        try:
            found = signature(index)
            seen = {self.old: "old", self.new: "new"}.get(found, "torn")
        except KbError as error:
            wrong.append(str(error))
        if seen == "torn":
            wrong.append("neither old nor new")
        if exit_code == 0 and seen != "new":
            wrong.append("reported success and did not commit")
        build(self.new_articles, index, encoder=ENCODER)
        wrong += self.unclean(index)
        shutil.rmtree(index)
        return seen, wrong

    def unclean(self, index: Path) -> list[str]:
        """What is wrong after the next build: it must hold the new state, and no file more. The bytes of an index of
        many segments depend on what was there before."""
        there = content(index)
        if self.segments:
            named = {entry["name"] for entry in read_manifest(index)[0]["files"].values()} | {MANIFEST}
            expected, same = named, signature(index) == self.new
        else:
            expected, same = set(self.new_content), there == self.new_content
        return [] if same and there.keys() == expected else [f"the next build is not clean: {there.keys() ^ expected}"]

    def limited(self, max_bytes: int) -> tuple[str, list[str]]:
        """No file may grow beyond so many bytes."""
        index = self.root / f"limit-{max_bytes}.kb"
        shutil.copytree(self.old_index, index)

        def limit() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))

        done = subprocess.run(self.arguments(index), capture_output=True, text=True, preexec_fn=limit)
        return self.judge(index, done.returncode, self.complaints(done, index, os.strerror(errno.EFBIG)))

    def full_disk(self, kilobytes: int) -> tuple[str, list[str]] | None:
        """On a disk of its own; None when mounting is not allowed."""
        disk = self.root / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "kb-crash", str(disk)]
        if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
            disk.rmdir()
            return None
        try:
            index = disk / "index"
            shutil.copytree(self.old_index, index)
            done = subprocess.run(self.arguments(index), capture_output=True, text=True)
            wrong = self.complaints(done, index, os.strerror(errno.ENOSPC))
            if done.returncode != IndexWriteFailed.exit_code:
                wrong.append(f"the disk of {kilobytes} KB was not full")
            subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
            return self.judge(index, done.returncode, wrong)
        finally:
            subprocess.run(["umount", str(disk)], check=True)
            disk.rmdir()

    def readers(self, builds: int, count: int = 3) -> tuple[int, float, list[str]]:
        """How many reads there were in how many seconds while an index was built to and fro, and what was wrong."""
        index = self.root / "busy.kb"
        shutil.copytree(self.old_index, index)
        script = [sys.executable, "-c", READ, str(Path(__file__).parent), str(index), self.old, self.new]
        children = [
            subprocess.Popen(script, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(count)
        ]
        started = time.monotonic()
        for n in range(builds):
            build(self.root / ("old" if n % 2 else "new") / "articles", index, encoder=ENCODER)
        took = time.monotonic() - started
        index.with_name(index.name + ".stop").touch()
        reads, wrong = 0, []
        for child in children:
            stdout, stderr = child.communicate(timeout=60)
            if child.returncode == 0:
                reads += int(stdout)
            else:
                wrong.append(stderr.strip().rpartition("\n")[2] or f"a reader died ({child.returncode})")
        return reads, took, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", type=int, default=300, help="how many builds the readers are to survive")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--segments", action="store_true", help="of an index of many small segments")
    parser.add_argument("--self-test", action="store_true", help="try a writer that is not crash-safe: must be caught")
    args = parser.parse_args()
    if shutil.which("strace") is None:
        print("skipped: strace is not installed (apt-get install strace)", file=sys.stderr)
        return 77
    command = [sys.executable, "-c", IN_PLACE] if args.self_test else [sys.executable, "-m", "kb"]
    if args.segments:
        command = [sys.executable, "-c", SMALL]
        pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER = 0, 12, 3
    with tempfile.TemporaryDirectory(prefix="kb-crash-") as name:
        torn = crash(
            Harness(Path(name), command, segments=args.segments), args.jobs, 0 if args.self_test else args.builds
        )
    if args.self_test:
        print("the harness caught it" if torn else "THE HARNESS CAUGHT NOTHING")
        return int(not torn)
    return int(bool(torn))


def crash(harness: Harness, jobs: int, builds: int) -> int:
    """Runs everything, prints a table, and returns how many runs went wrong."""
    started = time.monotonic()
    failed: list[str] = []
    calls = harness.calls()
    print("an undisturbed build: " + ", ".join(f"{n} {call}" for call, n in sorted(calls.items())))
    cases = [
        Case(call, number, fault)
        for fault in ("KILL", "ENOSPC", "EIO")
        for call, count in sorted(calls.items())
        for number in range(1, count + 1)
    ]
    lock = threading.Lock()
    seen: dict[str, Counter[str]] = {}

    def note(group: str, what: str, found: tuple[str, list[str]]) -> None:
        with lock:
            seen.setdefault(group, Counter())[found[0]] += 1
            if found[1]:
                failed.append(f"{what}: {'; '.join(found[1])}")

    with ThreadPoolExecutor(jobs) as pool:
        for case, found in zip(cases, pool.map(harness.run, cases), strict=True):
            note(case.fault, str(case), found)
    largest = max(map(len, harness.new_content.values()))
    for max_bytes in range(0, largest + 2000, largest // 12):
        note("limit", f"files of at most {max_bytes} bytes", harness.limited(max_bytes))
    used = sum(-(-path.stat().st_size // 4096) * 4 for path in harness.old_index.iterdir())
    for spare in (0, 4, 16, 32, 64):
        full = harness.full_disk(used + spare)
        if full is None:
            print("skipped: a full disk (mounting is not allowed here)")
            break
        note("full disk", f"a disk with {spare} KB left", full)
    for group, counts in seen.items():
        print(
            f"{group:10}{sum(counts.values()):5} runs: "
            + ", ".join(f"{n} {kind}" for kind, n in sorted(counts.items()))
        )
    if builds:
        reads, took, wrong = harness.readers(builds)
        failed += wrong
        print(
            f"{'readers':10}{reads:5} reads of 20 questions during {builds} builds in {took:.0f} s, {len(wrong)} failed"
        )
    for line in failed:
        print(f"WRONG  {line}")
    print(f"{len(failed)} wrong, {time.monotonic() - started:.0f} s")
    return len(failed)


if __name__ == "__main__":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    sys.exit(main())
