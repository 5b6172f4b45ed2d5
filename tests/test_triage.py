"""An issue says first what to do; one whose message has many causes leads to the one that was pasted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from conftest import EMPTY_RECORD, FakeEncoder, Write

from kb import KnowledgeBase
from kb.brief import known_issue, of_finding
from kb.cli.render import Screen
from kb.records import Branch, Hit, IssueRecord
from kb.scan import Finding
from kb.scraped import parse
from kb.text.steps import steps

FAMILY = """---
project: Frob
---

# Frob is full

## Frob is full, whatever filled it

### In short

Many things fill it;
look at the number first: `frob --top`.

### Symptom

```
FrobError: frob is full (42 tins left, unallocated)
```

### Fix

1. Look at the number. *(maintainer)*

### Which one is it

- `prints "vendor err 129"`: it came from outside: [`outside#1`](outside.md)
- `seqnum < 100 or prints "first  step"`: at the start:
  [`start#1`](start.md)
- After hours: [`start#2`](start.md)
- Nobody knows.
"""
BRANCH = """---
project: Frob
---

# Frob

## Frob is full {0}

### Symptom

```
FrobError: frob is full (42 tins left, unallocated)
```

It is about {0}.

### Fix

1. Mend {0}.

## Something else {0}

### Symptom

```
QuuxError: quux {0}
```

### Fix

1. Mend quux {0}.
"""
LINE = "FrobError: frob is full (42 tins left, unallocated)"


def record_of(text: str, path: str = "en/full.md") -> IssueRecord:
    return parse(text.encode(), path=path).records[0]


def test_a_family_is_read() -> None:
    record = record_of(FAMILY)
    assert record.summary == "Many things fill it; look at the number first: `frob --top`."
    assert record.triage.startswith('- `prints "vendor err 129"`: it came') and record.triage.endswith("knows.")
    assert record.branches == (
        Branch('prints "vendor err 129"', "outside#1"),
        Branch('seqnum < 100 or prints "first  step"', "start#1"),
        Branch("", "start#2"),
    )
    assert IssueRecord.from_dict(record.as_dict()) == record


def test_one_way_out_is_a_way_out() -> None:
    text = "# T\n\n## A\n\n### Symptom\n\nx\n\n### Which one is it\n\n- `gpu == 3`: the third:\n  [`a#1`](a.md)\n"
    assert record_of(text).branches == (Branch("gpu == 3", "a#1"),)


def test_the_chinese_headings() -> None:
    sections = {"一句话": "太满，先删。", "现象": "满", "先分清是哪一种": "- 开机：[`a#1`](a.md)\n- 其后：[b#2](b.md)"}
    text = "".join(f"### {heading}\n\n{body}\n\n" for heading, body in sections.items())
    record = record_of(f"# 满\n\n## 满了\n\n{text}", "zh/full.md")
    assert (record.summary, record.branches) == ("太满，先删。", (Branch("", "a#1"), Branch("", "b#2")))


@pytest.mark.parametrize(
    ("fix", "expected"),
    [
        ("", []),
        ("Just wait. *(reported)*", []),
        ("1. Do. *(reported)*\n\n   ```sh\n   2. no *(maintainer)*\n   ```\n2. Check: it runs.", ["reported", None]),
        ("1. 降级。*（维护者）*\n2. 也许\n   是。*（推断）*\n   - 小项 *（已复现）*", ["maintainer", "reasoned"]),
        ("- One *(reproduced)*\n- Two *(Reported)*", ["reproduced", None]),
        ("1、重启。*（推断）*\n2、删掉检查点文件", ["reasoned", None]),
        ("1. One\u2028line *(reported)*\n2. Two *(reasoned)*", ["reported", "reasoned"]),
    ],
)  # fmt: skip
def test_steps_say_what_stands_behind_them(fix: str, expected: list[str | None]) -> None:
    assert [step.basis for step in steps(fix)] == expected


def test_a_step_that_only_looks_claims_nothing() -> None:
    assert [step.claims for step in steps("1. Check: it runs.\n2. Checkpoint often.\n3. 检查：能跑。\n4. 降级。")] == [
        False,
        True,
        False,
        True,
    ]


@pytest.fixture
def base(tmp_path: Path, write: Write) -> Iterator[KnowledgeBase]:
    articles = write({"full.md": FAMILY, "outside.md": BRANCH.format("outside"), "start.md": BRANCH.format("start")})
    KnowledgeBase.build(articles, tmp_path / "index", encoder=FakeEncoder())
    with KnowledgeBase.open(tmp_path / "index", encoder=FakeEncoder()) as opened:
        yield opened


@pytest.mark.parametrize(
    ("more", "leads_to"),
    [
        ("", ()),
        ("NET: completion with VENDOR  ERR 129", ("outside#1",)),
        ("SeqNum=7", ("start#1",)),
        ("SeqNum=700", ()),
        ("at the first\nstep", ("start#1",)),
        ("SeqNum=7 vendor err 129", ("outside#1", "start#1")),
    ],
)
def test_it_leads_where_the_question_points(more: str, leads_to: tuple[str, ...], base: KnowledgeBase) -> None:
    result = base.search(f"{LINE}\n{more}")
    hits = {hit.issue: hit for hit in result.hits}
    assert hits["full#1"].leads_to == leads_to
    assert not [hit for issue, hit in hits.items() if issue != "full#1" and hit.leads_to]
    for issue in leads_to:
        assert hits[issue].confidence >= hits["full#1"].confidence
        assert hits[issue].rank < hits["full#1"].rank


def test_what_it_leads_to_is_no_rival(base: KnowledgeBase, tmp_path: Path, write: Write) -> None:
    """The same line in three issues makes none of them sure, unless one of them leads to the others."""
    with_family = {hit.issue: hit.evidence.lead for hit in base.search(LINE).hits}
    alone = FAMILY.replace("### Which one is it", "#### Others")
    articles = write({"full.md": alone, "outside.md": BRANCH.format("outside"), "start.md": BRANCH.format("start")})
    KnowledgeBase.build(articles, tmp_path / "other", encoder=FakeEncoder())
    with KnowledgeBase.open(tmp_path / "other", encoder=FakeEncoder()) as opened:
        without = {hit.issue: hit.evidence.lead for hit in opened.search(LINE).hits}
    assert with_family["full#1"] > without["full#1"]


# --- what a person sees ---------------------------------------------------------------------------------------------


@pytest.fixture
def hit(base: KnowledgeBase) -> Hit:
    return next(hit for hit in base.search(f"{LINE}\nSeqNum=7").hits if hit.issue == "full#1")


def test_the_answer_comes_first(hit: Hit) -> None:
    lines = known_issue(hit, 80)
    assert lines[1] == "  In short: Many things fill it; look at the number first: `frob --top`."
    assert lines[2] == "  What you pasted points to: start#1"
    way = lines[lines.index("  Which one is it:") + 1]
    assert way.startswith('    - `prints "vendor err 129"`: it came from outside')
    assert len(lines) <= 15
    finding = Finding(hit.issue, hit.record, 0.9, 1, 1, 1, 1, LINE, "bundled")
    told = [line.text for line in of_finding(finding, "a.log")]
    assert told[3] == "  In short: Many things fill it; look at the number first: `frob --top`."
    without = replace(finding, record=replace(EMPTY_RECORD, cause="Why.", fix="1. How."))
    assert [line.text for line in of_finding(without, "a.log")][3:5] == ["  Cause: Why.", "  Fix: How."]


def test_the_terminal(hit: Hit, base: KnowledgeBase, capsys: pytest.CaptureFixture[str]) -> None:
    result = replace(base.search(LINE), verdict="known", hits=(hit,))
    Screen(colour=False).result(result, size=3, where="here")
    short = capsys.readouterr().out
    assert short.index("In short") < short.index("points to: start#1") < short.index("Try first")
    Screen(colour=False).result(result, size=3, where="here", full=True)
    text = capsys.readouterr().out
    places = [text.index(words) for words in ("In short", "points to: start#1", "Symptom", "Fix", "Which one is it")]
    assert places == sorted(places)
