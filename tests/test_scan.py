"""kb scan: every known issue of a log, none in a healthy one, whatever the log is made of and however it comes."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import CORPUS, THOROUGH, Write, article, check_growth, cpu_seconds, examples, run_kb
from hypothesis import given, settings
from hypothesis import strategies as st

from kb import KnowledgeBase
from kb.cli.scan import chunks
from kb.errors import QueryError
from kb.index import follow
from kb.index.build import build
from kb.logs.classify import is_error_line, is_usual, says_failure, warns
from kb.logs.levels import process_of
from kb.records import IssueRecord
from kb.scan import Finding, Scan, Scanner, ScanReport

CASES = Path(__file__).parent / "cases"
HEALTHY = sorted((CASES / "healthy").glob("*.log"))
LOGS = json.loads((CASES / "scan.json").read_text("utf-8"))
DEQUE = "IndexError: pop from an empty deque"
DEQUE_ISSUE = "ms-swift-ovis2-grpo#2"
HEALTHY_LINES = [line for path in HEALTHY for line in path.read_bytes().decode().splitlines()]


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as base:
        yield base


@pytest.fixture(scope="module")
def scanner(base: KnowledgeBase) -> Scanner:
    return Scanner(base.searcher)


def seen(report: ScanReport) -> list[list[object]]:
    return [[f.issue, f.first_line, f.last_line, f.count, f.processes] for f in report.findings]


def encoded(lines: list[str]) -> bytes:
    return "\n".join(lines).encode()


# --- what is found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", HEALTHY, ids=lambda path: path.stem)
def test_no_alarm_in_a_healthy_log(scanner: Scanner, path: Path) -> None:
    assert seen(scanner.scan([path.read_bytes()])) == []


@pytest.mark.parametrize("case", LOGS, ids=lambda case: case["name"])
def test_a_log(scanner: Scanner, case: dict[str, list[object]]) -> None:
    assert seen(scanner.scan(["\n".join(map(str, case["log"])).encode()])) == case["found"]


def test_a_warning_is_told_when_asked_for(scanner: Scanner) -> None:
    log = (CASES / "healthy" / "sft-lora-warnings.log").read_bytes()
    found = {finding.issue for finding in scanner.scan([log], warnings=True).findings}
    assert "tokenizers-parallelism-fork#1" in found


def test_what_stands_around_a_shared_line_decides(scanner: Scanner) -> None:
    """Three issues print this line; the frames above it, and the kernel's own complaint, are those of one."""
    shared = "RuntimeError: CUDA error: device-side assert triggered"
    kernel = "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0]"
    told = f"{kernel}, thread: [7,0,0] Assertion `t >= 0 && t < n_classes` failed."
    log = [*HEALTHY_LINES[:30], told, shared, *HEALTHY_LINES[30:50]]
    assert seen(scanner.scan([encoded([*HEALTHY_LINES[:30], shared, *HEALTHY_LINES[30:50]])])) == []
    assert [f.issue for f in scanner.scan([encoded(log)]).findings] == ["pytorch-nll-loss-label-range#1"]


SHM = "DataLoader worker (pid 3412) is killed by signal: "
LAUNCHED = (
    "[2024-12-25 11:20:18,1] [ERROR] [launch.py:322:sigkill_handler] ['python', '-u', 'train.py', '--local_rank=7', "
    "'--deepspeed', 'z3.json'] exits with return code = "
)
XID = (
    "NVRM: Xid (PCI:0000:8a:00): {}, An uncorrectable double bit error (DBE) has been detected on GPU in the "
    "framebuffer at partition 4, subpartition 1"
)


@pytest.mark.parametrize(
    ("line", "same", "others"),
    [
        (LAUNCHED + "{}", ["-9"], ["-11", "-6", "-15", "1", "139"]),
        (f"RuntimeError: {SHM}{{}}.", ["Killed"], ["Segmentation fault", "Aborted", "Terminated"]),
        (XID, ["48"], ["31", "79", "13"]),
    ],
    ids=["return code", "signal", "Xid"],
)
def test_a_number_that_names_a_failure(scanner: Scanner, line: str, same: list[str], others: list[str]) -> None:
    """-11 is not -9, whatever else is the same: neither alone, nor by what is around, nor after a line that agrees."""
    around = ["[2024-12-25 11:20:18,1] [INFO] [launch.py:316:sigkill_handler] Killing subprocess 345"]
    told = line.format(same[0])
    (first,) = scanner.scan([encoded([*around, told])]).findings
    for other in others:
        wrong = line.format(other)
        assert first.issue not in {f.issue for f in scanner.scan([encoded([*around, wrong])]).findings}, other
        for lines in ([wrong, told, wrong], [told, wrong, wrong], [wrong, wrong, told]):
            apart = [line for one in lines for line in (one, *[""] * 50)]  # each has circumstances of its own
            found = {f.issue: f for f in scanner.scan([encoded(apart)]).findings}
            at = apart.index(told) + 1
            assert (found[first.issue].first_line, found[first.issue].last_line) == (at, at)
            assert found[first.issue].count == 1
    for agreeing in same:
        log = encoded([line.format(agreeing), *[""] * 50, line.format(same[0])])
        assert [(f.issue, f.last_line, f.count) for f in scanner.scan([log]).findings] == [(first.issue, 52, 2)]


def test_the_telling_follows_the_log_or_the_wish(scanner: Scanner) -> None:
    def lang(log: str, **options: str) -> str:
        (finding,) = scanner.scan([log.encode()], **options).findings  # type: ignore[arg-type]
        return finding.record.lang

    assert lang(DEQUE) == "en"
    assert lang(f"训练失败：{DEQUE}") == "zh"
    assert lang(DEQUE, lang="zh") == "zh"


def test_one_project(base: KnowledgeBase) -> None:
    log = encoded([DEQUE, "ImportError: /x/libtorch_cuda.so: undefined symbol: ncclCommRegister"])
    assert [f.issue for f in base.scanner("MS-Swift").scan([log]).findings] == [DEQUE_ISSUE]


def test_the_line_as_it_stood(scanner: Scanner) -> None:
    long = f'{"{"}"padding": "{"x, " * 200}", "log": "{DEQUE}", "more": "{"y, " * 200}"{"}"}'
    (finding,) = scanner.scan([f"\x1b[31m[rank7]:   {DEQUE}\x1b[0m\n".encode()]).findings
    assert finding.text == f"[rank7]: {DEQUE}"
    (finding,) = scanner.scan([long.encode()]).findings
    assert DEQUE in finding.text
    assert len(finding.text) < 310


@pytest.mark.parametrize("before", [0, 100, 240, 260, 500, 1900, 2500, 9000, 30_000])
@pytest.mark.parametrize("after", [0, 100, 3000, 7000])
def test_a_long_line_is_shown_in_one_piece(scanner: Scanner, before: int, after: int) -> None:
    """The message once, each ellipsis where something is left out, and nothing that did not stand there."""
    head = " ".join(f"empty{i:05}" for i in range(before // 11))
    line = f"{head} {DEQUE} {' '.join(f'after{i:05}' for i in range(after // 11))}".strip()
    (finding,) = scanner.scan([line.encode()]).findings
    assert finding.text.count(DEQUE) == 1
    assert finding.text.removeprefix("… ").removesuffix(" …") in line
    assert finding.text.startswith("… ") == (not line.startswith(finding.text[:20]))
    assert finding.text.endswith(" …") == (not line.endswith(finding.text[-20:]))


ASSERTION = """# Notes on shards

## The loader stops at an assertion

### Symptom

```
    assert len(self.shard_queue) > 0
AssertionError
```

### Fix

1. Name the folder of the shards.
"""


@pytest.fixture(scope="module")
def of_shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("shards")
    (folder / "articles" / "en").mkdir(parents=True)
    for path in sorted((CORPUS / "en").glob("[m-z]*.md")):
        shutil.copy(path, folder / "articles" / "en")
    (folder / "articles" / "en" / "shards.md").write_text(ASSERTION, encoding="utf-8")
    build(folder / "articles", folder / "index")
    with KnowledgeBase.open(folder / "index") as base:
        yield base


@pytest.mark.parametrize("prefix", ["", "[rank1]: "])
@pytest.mark.parametrize("carets", [[], ["    ^^^^^^^"]], ids=["plain", "with marks"])
def test_an_assertion_without_a_message_is_known_by_its_statement(
    of_shards: KnowledgeBase, prefix: str, carets: list[str]
) -> None:
    def found(statement: str) -> list[tuple[str, int]]:
        frame = ["Traceback (most recent call last):", '  File "/x/shards.py", line 3, in load', f"    {statement}"]
        raised = [f"{prefix}{line}" for line in (*frame, *carets, "AssertionError")]
        report = of_shards.scan([encoded([*HEALTHY_LINES[:40], *raised, *HEALTHY_LINES[:20]])])
        return [(finding.issue, finding.first_line) for finding in report.findings]

    assert found("assert len(self.shard_queue) > 0") == [("shards#1", 44 + len(carets))]
    assert found("assert width == height") == []


# --- a rebuild in the middle ----------------------------------------------------------------------------------------


def test_a_log_is_judged_by_one_snapshot(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The scanner kept its fingerprints while its questions went to the newest snapshot: after a rebuild the report
    named a snapshot that did not hold the issue."""
    build(write({"en/a.md": article("the flux capacitor boomed at 88 mph")}), tmp_path / "index")
    monkeypatch.setattr(follow, "LOOK_EVERY_S", 0.0)
    with KnowledgeBase.open(tmp_path / "index") as base:
        before = base.snapshot
        one = Scan(base.scanner())
        one.feed(b"healthy line\n")
        (tmp_path / "articles" / "en" / "a.md").unlink()
        build(write({"en/b.md": article("the warp core breached in deck 12")}), tmp_path / "index")
        one.feed(b"RuntimeError: the flux capacitor boomed at 88 mph\n")
        report = one.finish()
        assert [f.issue for f in report.findings] == ["a#1"]
        assert report.snapshot == before != base.snapshot


def test_a_log_that_is_followed_moves_to_what_is_built_meanwhile(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(write({"en/a.md": article("the flux capacitor boomed at 88 mph")}), tmp_path / "index")
    monkeypatch.setattr(follow, "LOOK_EVERY_S", 0.0)
    with KnowledgeBase.open(tmp_path / "index") as base:
        one = Scan(base.scanner())
        one.feed(b"RuntimeError: the flux capacitor boomed at 88 mph\n")
        build(write({"en/b.md": article("the warp core breached in deck 12")}), tmp_path / "index")
        one.feed(b"RuntimeError: the warp core breached in deck 12\n")
        assert [f.issue for f in one.findings] == ["a#1"]
        one.move_to(base.scanner())
        one.feed(
            b"RuntimeError: the warp core breached in deck 12\nRuntimeError: the flux capacitor boomed at 88 mph\n"
        )
        report = one.finish()
    assert [(f.issue, f.first_line, f.last_line, f.count) for f in report.findings] == [
        ("a#1", 1, 4, 2),
        ("b#1", 3, 3, 1),
    ]
    assert report.snapshot == base.snapshot


def test_after_a_move_a_finding_has_the_new_record_and_what_is_gone_is_gone(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    boomed, breached = "the flux capacitor boomed at 88 mph", "the warp core breached in deck 12"
    build(write({"en/a.md": article(boomed, fix="Old."), "en/b.md": article(breached)}), tmp_path / "index")
    monkeypatch.setattr(follow, "LOOK_EVERY_S", 0.0)
    with KnowledgeBase.open(tmp_path / "index") as base:
        one = Scan(base.scanner())
        one.feed(f"RuntimeError: {boomed}\nRuntimeError: {breached}\n".encode())
        (tmp_path / "articles" / "en" / "b.md").unlink()
        build(write({"en/a.md": article(boomed, fix="New.")}), tmp_path / "index")
        one.move_to(base.scanner())
        (finding,) = one.finish().findings
    assert (finding.issue, finding.record.fix) == ("a#1", "New.")


# --- laws -----------------------------------------------------------------------------------------------------------

healthy_lines = st.lists(st.sampled_from(HEALTHY_LINES), max_size=60)
any_text = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\x1b"), max_size=80)


class _Naive(Scan):
    """Looks at every line."""

    def _candidates(self, block: bytes) -> list[int]:
        return list(range(block.count(b"\n") + 1))


def _naive(scanner: Scanner, log: bytes) -> ScanReport:
    one = _Naive(scanner)
    one.feed(log)
    return one.finish()


@settings(max_examples=25)
@given(before=healthy_lines, after=healthy_lines, rank=st.integers(0, 99))
def test_a_known_line_is_found_where_it_stands(
    scanner: Scanner, before: list[str], after: list[str], rank: int
) -> None:
    (finding,) = scanner.scan([encoded([*before, f"[rank{rank}]: {DEQUE}", *after])]).findings
    assert (finding.issue, finding.first_line, finding.count) == (DEQUE_ISSUE, len(before) + 1, 1)


@settings(max_examples=25)
@given(lines=st.lists(any_text, max_size=20))
def test_any_text_around_changes_neither_number_nor_issue(scanner: Scanner, lines: list[str]) -> None:
    found = {(f.issue, f.first_line) for f in scanner.scan([encoded([*lines, DEQUE, *lines])]).findings}
    assert (DEQUE_ISSUE, len(lines) + 1) in found


@settings(max_examples=15)
@given(lines=st.permutations(HEALTHY_LINES))
def test_healthy_lines_in_another_order_are_healthy(scanner: Scanner, lines: list[str]) -> None:
    assert seen(scanner.scan([encoded(lines)])) == []


@settings(max_examples=examples(40))
@given(data=st.data())
def test_where_a_piece_ends_changes_nothing(scanner: Scanner, data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from([*HEALTHY_LINES[:40], *HARD]), max_size=40))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    log = end.join(lines).encode("utf-8", "surrogateescape")
    cuts = sorted(data.draw(st.lists(st.integers(0, len(log)), max_size=12)))
    pieces = [log[a:b] for a, b in zip([0, *cuts], [*cuts, len(log)], strict=True)]
    whole, cut = scanner.scan([log]), scanner.scan(pieces)
    assert (cut.findings, cut.lines, cut.size) == (whole.findings, whole.lines, whole.size)


@pytest.mark.thorough
@settings(max_examples=40)
@given(data=st.data())
def test_the_quick_look_loses_nothing(scanner: Scanner, data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from([*HEALTHY_LINES, *HARD]), max_size=40))
    log = "\n".join(lines).encode("utf-8", "surrogateescape")
    assert scanner.scan([log]).findings == _naive(scanner, log).findings


HARD = [
    DEQUE,
    f"\x1b[1;31m{DEQUE[:12]}\x1b[0m{DEQUE[12:]}",
    f" 12%|█▏  | 12/100\r\x1b[K{DEQUE}",
    '{"log":"Traceback\\n' + DEQUE + '\\n"}',
    "训练失败：" + DEQUE,
    "\x00\x00\x00" + DEQUE,
    "\udcff\udcfe" + DEQUE,
    "x" * 9000 + " " + DEQUE + " " + "y" * 9000,
    DEQUE + " " + "z" * 20_000,
    "z" * 20_000 + "\x1b[31m " + DEQUE,
    "RuntimeError: CUDA error: device-side assert triggered",
    "OSError: [Errno 28] No space left on device",
    "SFTTrainer 不认 tokenizer",
    "",
]


# --- what a log may be made of --------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_encodings(scanner: Scanner, encoding: str, size: int) -> None:
    log = f"开始训练\r\n训练失败：{DEQUE}\r\n结束\r\n".encode(encoding)
    report = scanner.scan(log[i : i + size] for i in range(0, len(log), size))
    assert seen(report) == [[DEQUE_ISSUE, 2, 2, 1, 1]]
    assert (report.lines, report.findings[0].record.lang) == (3, "zh")


@pytest.mark.parametrize(
    "log", [b"", b"\n", b"\r", b"\x00" * 5000, b"\xff\xfe", b"\xef\xbb\xbf", b"\xff" * 999], ids=repr
)
def test_next_to_nothing(scanner: Scanner, log: bytes) -> None:
    assert seen(scanner.scan([log])) == []
    assert seen(scanner.scan([])) == []


def test_a_chinese_line_without_latin_words(article_base: KnowledgeBase) -> None:
    log = "[12:00:01] 进度 3%\n[12:00:02] 错误：梯度桶第 17 号聚合超时，请检查光模块\n".encode()
    assert seen(article_base.scanner().scan([log])) == [["bucket#1", 2, 2, 1, 1]]


@pytest.fixture
def article_base(tmp_path: Path) -> Iterator[KnowledgeBase]:
    articles = tmp_path / "articles" / "zh"
    articles.mkdir(parents=True)
    told = "RuntimeError: 梯度桶第 3 号聚合超时，请检查光模块"
    (articles / "bucket.md").write_text(
        f"# 聚合\n\n## 梯度桶聚合超时\n\n### 现象\n\n```\n{told}\n```\n\n### 解决方案\n\n1. 换掉光模块。\n",
        "utf-8",
    )
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index")
    with KnowledgeBase.open(tmp_path / "index") as base:
        yield base


def _long_log(megabytes: int) -> Iterator[bytes]:
    """Healthy, with the known line as its last."""
    lines = (HEALTHY_LINES + [line for line in HEALTHY_LINES if "loss" in line] * 10) * 5
    piece = encoded(lines) + b"\n"
    for _ in range((megabytes << 20) // len(piece)):
        yield piece
    yield DEQUE.encode()


def _peak(scanner: Scanner, chunks: Iterator[bytes]) -> int:
    tracemalloc.start()
    (finding,) = scanner.scan(chunks).findings
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert finding.issue == DEQUE_ISSUE
    return highest


@pytest.mark.thorough
def test_memory_is_bounded(scanner: Scanner) -> None:
    one_line = (b"x" * (1 << 20) if i < 30 else f" {DEQUE}".encode() for i in range(31))
    assert _peak(scanner, one_line) < 16 << 20
    if THOROUGH:
        assert _peak(scanner, _long_log(2)) < 16 << 20
    assert _peak(scanner, (f"[rank{i}]: {DEQUE} {i:x}\n".encode() * 3 for i in range(4000))) < 16 << 20


def test_megabytes(scanner: Scanner) -> None:
    """A ratio, not seconds: a pattern looked for in each line is what one would write instead."""
    pattern = re.compile(rb"IndexError: pop from an empty|CUDA out of memory|NCCL WARN|Killed|Traceback")
    log = list(_long_log(60 if THOROUGH else 5))
    reports = []

    def look() -> None:
        assert sum(pattern.search(line) is not None for chunk in log for line in chunk.split(b"\n"))

    ratios = []
    for _ in range(5):
        loop, took = cpu_seconds(look), cpu_seconds(lambda: reports.append(scanner.scan(log)))
        ratios.append(took / loop)
        if ratios[-1] < 5:
            break
    assert min(ratios) < 5
    assert reports[0].size == sum(map(len, log))
    assert [f.issue for f in reports[0].findings] == [DEQUE_ISSUE]


@pytest.mark.parametrize(
    "line",
    [
        DEQUE,
        "error " * 4000,
        "Traceback " * 2000,
        "CUDA error: " * 1500,
        "{'" * 8000,
        "/a.b" * 5000,
        "报错" * 6000,
        "7" * 16000,
    ],
    ids=lambda line: line[:12],
)
def test_time_is_linear(scanner: Scanner, line: str) -> None:
    def log(lines: int) -> Callable[[], object]:
        data = encoded([line] * lines)
        return lambda: scanner.scan([data])

    check_growth(log, 40_000 // len(line))


@pytest.mark.thorough
def test_a_flood_of_different_lines_costs_little_more_than_a_look_at_each(scanner: Scanner) -> None:
    """Nothing of them can be remembered. A ratio to the patterns of an error line, which each of them is."""
    names = (f"{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}shard" for i in range(3000))
    lines = [f"[rank0]: {DEQUE} while reading {name} of the queue" for name in names]

    look = min(cpu_seconds(lambda: [is_error_line(line) for line in lines]) for _ in range(5))
    assert any(cpu_seconds(lambda: scanner.scan([encoded(lines)])) < 8 * look + 0.02 for _ in range(5))


# --- the wording of lines -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "failure", "usual", "warning"),
    [
        (DEQUE, True, False, False),
        (f"[rank0]: {DEQUE}", True, False, False),
        (f"2025-03-11 09:12:01,118 INFO {DEQUE}", False, True, False),
        ("INFO 03-11 09:12:01 [core.py:3] everything failed successfully", False, True, False),
        ("WARNING: could not find the metadata file", False, True, True),
        ("/x/y.py:12: FutureWarning: `foo` is deprecated", False, True, True),
        ("node1:44:44 [0] NCCL WARN Call to posix_fallocate failed", True, False, False),
        ("[W311 09:12:02.114 socket.cpp:697] [c10d] The client socket has failed to connect", False, True, True),
        ("[E311 09:12:02.114 socket.cpp:697] [c10d] The client socket has failed", True, False, False),
        ("ERROR 03-11 [core.py:390] warning was ignored", True, False, False),
        ("ConnectionError: no route. Retrying in 1s", False, True, True),
        ("    raise ValueError('no')", False, False, False),
        ("step 3 loss 2.1", False, False, False),
        ("训练失败：显存不足", True, False, False),
        (f"Fixed a crash: {DEQUE} (#1234)", False, True, False),
        (f"- fix(zero): {DEQUE}", False, True, False),
        (f"3f9d2c1 Fixes {DEQUE}", False, True, False),
        (f"{DEQUE} (#88)", False, True, False),
        (f"INFO:root:{DEQUE}", True, False, False),
        (f"2025-03-11 09:12:01.118 | INFO     | runner:pump:88 - stderr: {DEQUE}", True, False, False),
        ("INFO:root:2 errors were ignored", False, True, False),
        ("2025-03-11 09:12:01.118 | INFO | stderr: downloading failed shards", False, True, False),
    ],
)
def test_what_a_line_says(line: str, failure: bool, usual: bool, warning: bool) -> None:
    assert (says_failure(line), is_usual(line), warns(line)) == (failure, usual, warning)


def test_the_process_that_a_prefix_names() -> None:
    lines = [
        "[rank0]: x",
        "[rank12]: x",
        "(WorkerDict pid=8) x",
        "[1,3]<stderr>: x",
        "3: x",
        "node7: x",
        "g1:44:45 [0] x",
    ]
    assert len({process_of(line) for line in lines}) == len(lines)
    assert process_of("Mar 11 09:14:07 gpu07 kernel: NVRM: Xid: 79, pid=88121") == ""


# --- the command ----------------------------------------------------------------------------------------------------


@pytest.fixture
def kb(index: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., subprocess.CompletedProcess[str]]:
    monkeypatch.setenv("KB_INDEX", str(index))

    def run(*arguments: str | Path, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        return run_kb("scan", *map(str, arguments), stdin=stdin)

    return run


def test_the_command(kb: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    log, packed, healthy = tmp_path / "a.log", tmp_path / "b.log.gz", HEALTHY[0]
    log.write_bytes(encoded(["fine", f"[rank0]: {DEQUE}", f"[rank1]: {DEQUE}"]))
    packed.write_bytes(gzip.compress(encoded(["一切正常", f"训练失败：{DEQUE}"])))
    ended = kb(log, packed, healthy)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"{log}: lines 2 to 3, 2 times  ·  by 2 ranks or processes" in ended.stdout
    assert f"{packed}: 第 2 行" in ended.stdout
    assert f"No known issue in {len(healthy.read_text('utf-8').splitlines())} lines of {healthy}." in ended.stdout
    ended = kb("--json", log, "-", stdin=f"x\n{DEQUE}".encode())
    form = json.loads(ended.stdout)
    assert form["found"] == 2
    assert [one["log"] for one in form["logs"]] == [str(log), "-"]
    assert [one["findings"][0]["first_line"] for one in form["logs"]] == [2, 2]


def test_the_exit_code_of_the_command(kb: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    quiet = kb("--min-confidence", "0.99", "-q", stdin=DEQUE.encode())
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (1, "", "")
    assert kb(tmp_path / "none.log").returncode == 2
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"x" * 9999)[:-9])
    with pytest.raises(QueryError, match=r"broken\.gz"):
        list(chunks(broken, progress=False))


@pytest.mark.parametrize("value", ["nan", "-0.1", "1.1", "x"])
def test_a_confidence_that_is_none(kb: Callable[..., subprocess.CompletedProcess[str]], value: str) -> None:
    ended = kb("--min-confidence", value, stdin=DEQUE.encode())
    assert (ended.returncode, ended.stdout) == (2, "")


def _noise(size: int) -> bytes:
    """That gzip can do little with."""
    return b"".join(hashlib.sha256(b"%d" % i).hexdigest().encode() + b"\n" for i in range(size // 65))


@pytest.mark.thorough
@pytest.mark.parametrize("damage", ["cut", "overwritten", "followed by something else"])
def test_a_damaged_archive_is_told_up_to_there(
    kb: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, damage: str
) -> None:
    """What was found before it counts, the next log is read, and the exit code is that of the findings."""
    broken, whole, fine = tmp_path / "broken.gz", tmp_path / "whole.log", tmp_path / "fine.log"
    packed = gzip.compress(encoded(["fine", DEQUE, ""]) + _noise(300_000))
    if damage == "cut":
        packed = packed[:-9]
    elif damage == "overwritten":
        packed = packed[: len(packed) // 2] + b"\xff" * 999 + packed[len(packed) // 2 + 999 :]
    else:
        packed += b"no archive"
    broken.write_bytes(packed)
    whole.write_bytes(DEQUE.encode())
    fine.write_bytes(b"fine\n")
    ended = kb("--json", broken, whole)
    form = json.loads(ended.stdout)
    assert (ended.returncode, form["found"]) == (0, 2)
    assert "broken.gz" in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ["damage" in log for log in form["logs"]] == [True, False]
    ended = kb(broken)
    assert ended.returncode == 0
    assert "1 known issue in the first" in ended.stdout
    broken.write_bytes(gzip.compress(_noise(300_000))[:-9])
    ended = kb(broken, fine)
    assert ended.returncode == 65
    assert "No known issue in the first" in ended.stdout
    assert "No known issue in 1 line" in ended.stdout
    assert kb(broken, whole).returncode == 0
    assert kb(fine).returncode == 1


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["moved away", "cut off"])
def test_a_log_that_is_made_anew(index: Path, tmp_path: Path, way: str) -> None:
    """Its lines are counted from 1, and an unfinished line of the old one is not glued to its first."""
    log = tmp_path / "growing.log"
    log.write_bytes(b"fine\n" * 500 + b"IndexError: pop from")
    command = [sys.executable, "-m", "kb", "scan", "--json", "-f", "--index", str(index), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stderr
        time.sleep(1.5)
        with log.open("ab") as more:
            more.write(f" an empty deque\n{DEQUE}\nIndexError: pop".encode())
        first = json.loads(process.stdout.readline())
        if way == "moved away":
            log.rename(tmp_path / "growing.log.1")
            log.write_bytes(f" from an empty deque\nfine\n{DEQUE}\n".encode())
        else:
            log.write_bytes(f" from an empty deque\nfine\n{DEQUE}\n".encode())
        assert b"growing.log was made anew" in process.stderr.readline()
        second = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stderr.read() == b""
    assert (first["issue"], first["first_line"]) == (DEQUE_ISSUE, 501)
    assert (second["issue"], second["first_line"]) == (DEQUE_ISSUE, 3)


@pytest.mark.thorough
def test_a_log_that_is_still_written(index: Path, tmp_path: Path) -> None:
    log = tmp_path / "growing.log"
    log.write_bytes(b"fine\n")
    command = [sys.executable, "-m", "kb", "scan", "--json", "-f", "--index", str(index), str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout
        with log.open("ab") as more:
            more.write(f"{DEQUE}\n".encode())
        told = json.loads(process.stdout.readline())
        assert (told["log"], told["issue"], told["first_line"]) == (str(log), DEQUE_ISSUE, 2)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0


# --- the report -----------------------------------------------------------------------------------------------------


def test_findings_while_the_log_grows(scanner: Scanner) -> None:
    one = Scan(scanner)
    one.feed(b"fine\n" + DEQUE.encode())
    assert one.findings == ()
    one.feed(b"\nfine\n")
    (finding,) = one.findings
    assert finding.first_line == 2
    one.feed(f"[rank1]: {DEQUE}\n".encode())
    report = one.finish()
    assert seen(report) == [[DEQUE_ISSUE, 2, 4, 2, 2]]


def test_the_public_form(scanner: Scanner) -> None:
    report = scanner.scan([DEQUE.encode()])
    form = report.as_dict()
    assert list(form) == ["verdict", "likely", "lines", "bytes", "took_ms", "snapshot", "findings"]
    assert (form["verdict"], form["likely"]) == ("known", [])
    (finding,) = form["findings"]
    assert list(finding)[:10] == [
        "issue", "lang", "project", "title", "verdict", "confidence", "first_line", "last_line", "count", "processes",
    ]  # fmt: skip
    assert isinstance(report.findings[0], Finding)
    assert isinstance(report.findings[0].record, IssueRecord)
    json.dumps(form)
