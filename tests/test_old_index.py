"""Indexes of every format that kb ever had, as it wrote them (tests/old_index): one is read, or refused by name."""

from __future__ import annotations

import io
import json
import shutil
import sys
from pathlib import Path

import pytest
from conftest import Write, article

from kb import KnowledgeBase
from kb.cli import main
from kb.errors import IndexCorrupt
from kb.index.fsck import check_index

OLD = sorted((Path(__file__).parent / "old_index").iterdir(), key=lambda path: path.name)


def format_of(index: Path) -> int:
    return int(json.loads((index / "manifest.json").read_bytes())["format"])


def test_every_older_format_is_here(tmp_path: Path, write: Write) -> None:
    """Whoever changes the format keeps an index of the one before."""
    KnowledgeBase.build(write({"en/a.md": article("boom")}), tmp_path / "index")
    assert [format_of(path) for path in OLD][: format_of(tmp_path / "index") - 1] == list(
        range(1, format_of(tmp_path / "index"))
    )


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.name)
def test_an_older_index_answers_or_names_its_format_and_the_command(
    old: Path, tmp_path: Path, write: Write, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    index = tmp_path / "index"
    shutil.copytree(old, index)
    before = {path.name: path.read_bytes() for path in index.iterdir()}
    try:
        with KnowledgeBase.open(index) as base:
            assert base.search("FrobError: frobnicator 3 too hot at step 7").hits[0].issue == "frobnicator#1"
            return
    except IndexCorrupt as error:
        assert f"format {format_of(old)}" in error.message
        assert "kb build" in (error.hint or "") and str(index) in (error.hint or "")
        assert Path(error.path or "").parent == index
    assert any(f"format {format_of(old)}" in problem.message for problem in check_index(index))
    monkeypatch.setattr(sys, "argv", ["kb", "search", "--index", str(index), "FrobError"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out) == (65, "")
    assert f"format {format_of(old)}" in err and "kb build" in err
    assert {path.name: path.read_bytes() for path in index.iterdir()} == before, "nobody repairs it by the way"
    report = KnowledgeBase.build(write({"en/a.md": article("boom")}), index)  # the command that was named
    assert report.parsed == report.articles == 1, "nothing of an old format is taken over"
    KnowledgeBase.build(write({"en/a.md": article("boom")}), tmp_path / "new")
    assert contents(index) == contents(tmp_path / "new")


def contents(index: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in index.iterdir() if not path.name.startswith(".")}
