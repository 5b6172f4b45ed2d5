"""`status: draft`: an article that waits for its review is checked and shown, and not served."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import FakeEncoder, Write, article

from kb.articles import is_draft
from kb.base import KnowledgeBase
from kb.cli import cli
from kb.index.build import build
from kb.review.lint import IS_DRAFT, review
from kb.scraped import parse

DRAFT = article("flux is 0").replace("---\n", "---\nstatus: draft\n", 1)


def issues(index: Path) -> list[str]:
    with KnowledgeBase.open(index, encoder=FakeEncoder()) as base:
        return [record.id for record in base.records()]


@pytest.mark.parametrize(
    ("head", "draft"),
    [
        ("---\nstatus: draft\n---\n", True),
        ("\ufeff\n---\nproject: X\nStatus: 'Draft'\n---\n", True),
        ("---\nstatus: [draft\nproject: x\n---\n", False),
        ("---\nstatus: draft\nproject: [x\n---\n", True),  # broken YAML, taken as it stands
        ("---\nstatus: published\n---\n", False),
        ("status: draft\n", False),
        ("---\ntags: [status, draft]\n---\n", False),
        ("---\nproject: X\n---\n\n---\nstatus: draft\n---\n", False),
        ("---\nproject: X\nstatus: draft\n...\n", True),
        ("---\r\nproject: X\r\nstatus: draft\r\n---\r\n", True),
        ("---\nproject: X\n---- a rule\nstatus: draft\n---\n", True),
    ],
)
def test_what_is_a_draft(head: str, draft: bool) -> None:
    data = f"{head}\n# Notes\n\nstatus: draft\n".encode()
    assert is_draft(data) is parse(data, path="en/a.md").draft is draft


def test_a_mistyped_status_is_told() -> None:
    (remark,) = parse(b"---\nstatus: darft\n---\n# Notes\n\nwords\n", path="en/a.md").remarks[:1]
    assert "draft is meant?" in remark.text


def test_a_build_leaves_drafts_out(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    folder, index = write({"en/a.md": article("boom at 7"), "en/b.md": DRAFT}), tmp_path / "index"
    report = build(folder, index, encoder=encoder)
    assert (report.drafts, report.articles, report.bad) == (("en/b.md",), 1, ())
    assert issues(index) == ["a#1/en"]
    plain = report.snapshot
    assert build(folder, index, encoder=encoder, drafts=True).drafts == ()
    assert issues(index) == ["a#1/en", "b#1/en"]
    again = build(folder, index, encoder=encoder)
    assert (again.snapshot, again.removed, again.drafts) == (plain, 1, ("en/b.md",))
    write({"en/b.md": DRAFT.replace("status: draft\n", "")})
    assert build(folder, index, encoder=encoder).parsed == 1
    assert issues(index) == ["a#1/en", "b#1/en"]


@pytest.mark.parametrize("left", ["1. <to write: the first step>", "1. <待写：来源没有给出解决办法>"])
def test_nothing_is_served_that_is_left_to_write(left: str, tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    """Also where somebody has taken the status out too soon."""
    finished = article("flux is 0")
    unfinished = finished.replace("Set it to 1.", left)
    assert left in unfinished
    folder, index = write({"en/a.md": article("boom at 7"), "en/b.md": finished}), tmp_path / "index"
    build(folder, index, encoder=encoder)
    write({"en/b.md": unfinished})
    for removed in (1, 0):
        report = build(folder, index, encoder=encoder)
        assert ([one.path for one in report.skipped], report.removed) == (["en/b.md"], removed)
        assert left[3:] in report.skipped[0].reason
        assert issues(index) == ["a#1/en"]
    assert build(folder, index, encoder=encoder, drafts=True).skipped == ()
    write({"en/b.md": finished})
    assert build(folder, index, encoder=encoder).skipped == ()
    assert issues(index) == ["a#1/en", "b#1/en"]


def test_a_draft_spoils_no_build(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    """Neither one that cannot be read nor one that tells an issue a second time."""
    folder = write(
        {"en/a.md": article("boom at 7"), "en/deep/a.md": DRAFT, "en/c.md": DRAFT.encode() + "标题".encode("gbk")}
    )
    assert len(build(folder, tmp_path / "index", encoder=encoder).drafts) == 2
    assert {finding.level for finding in review(folder) if finding.path != "en/a.md"} == {"warning"}
    assert not [finding for finding in review(folder) if finding.path == "en/a.md" and "told" in finding.message]


def test_a_check_lists_what_waits_and_fails_for_none(write: Write) -> None:
    left = DRAFT.replace("Set it to 1.", "1. <to write: the first step>").replace("flux is 0", "flow is 1")
    folder = write({"en/a.md": article("boom at 7"), "en/b.md": DRAFT, "en/c.md": left})
    found = review(folder)
    assert [finding.path for finding in found if finding.message == IS_DRAFT] == ["en/b.md", "en/c.md"]
    assert any("left to write" in finding.message for finding in found)
    assert {finding.level for finding in found} == {"warning"}
    ended = CliRunner().invoke(cli, ["check", "--articles", str(folder)])
    assert ended.exit_code == 0
    assert "2 drafts waiting for review" in ended.stderr


def test_a_draft_of_one_telling_is_no_mistake_of_the_other(write: Write) -> None:
    two = article("boom at 7", "flux is 0").replace("---\n", "---\nstatus: draft\n", 1)
    folder = write({"en/a.md": two, "zh/a.md": article("loss is 内存不足")})
    assert not [f for f in review(folder) if f.path == "zh/a.md" and "issues here" in f.message]


def test_the_commands_say_so(tmp_path: Path, write: Write) -> None:
    folder = write({"en/a.md": article("boom at 7"), "en/b.md": DRAFT})
    built = CliRunner().invoke(cli, ["build", "--articles", str(folder), "--index", str(tmp_path / "index")])
    assert (built.exit_code, "1 draft left out" in built.stderr) == (0, True)
    parsed = CliRunner().invoke(cli, ["parse", str(folder / "en/b.md")])
    assert "flux is 0" in parsed.stdout
    assert "a draft" in parsed.stderr
    assert '"draft": true' in CliRunner().invoke(cli, ["parse", "--json", "--explain", str(folder / "en/b.md")]).stdout
