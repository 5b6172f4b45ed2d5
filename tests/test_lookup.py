"""Issues by a part of their id or title; projects by nearly their name."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import FakeEncoder, Write, article, run_kb

from kb import KnowledgeBase
from kb.errors import QueryError
from kb.lookup import issues_with, near_words


@pytest.fixture
def base(tmp_path: Path, write: Write, encoder: FakeEncoder) -> KnowledgeBase:
    articles = write(
        {
            "en/fsdp-save-oom.md": article("boom", "bang", project="PyTorch"),
            "en/fsdp-wrap.md": article("flop", project="PyTorch"),
            "zh/nccl-9-hang.md": article("卡死", title="训练卡死", project="NCCL"),
        }
    )
    KnowledgeBase.build(articles, tmp_path / "index", encoder=encoder)
    return KnowledgeBase.open(tmp_path / "index", encoder=encoder)


@pytest.mark.parametrize(
    ("fragment", "found"),
    [
        ("fsdp", ["fsdp-save-oom#1", "fsdp-save-oom#2", "fsdp-wrap#1"]),
        (" FSDP-Wrap ", ["fsdp-wrap#1"]),
        ("oom#2", ["fsdp-save-oom#2"]),
        ("oom fsdp", ["fsdp-save-oom#1", "fsdp-save-oom#2"]),
        ("oom-fsdp", ["fsdp-save-oom#1", "fsdp-save-oom#2"]),
        ("save_fsdp#2", []),
        ("--", []),
        ("fsdp bang", ["fsdp-save-oom#2"]),
        ("卡死", ["nccl-9-hang#1"]),
        ("fsdp 卡死", []),
        ("nccl#9", []),
        ("", []),
        ("fsdp" * 100, []),
    ],
)
def test_the_issues_with_a_fragment(fragment: str, found: list[str], base: KnowledgeBase) -> None:
    assert [records[0].issue for records in issues_with(base.catalogue(), fragment)] == found


def test_near_spellings(base: KnowledgeBase) -> None:
    assert near_words(base.catalogue(), "fdsp") == ["fsdp"]
    assert near_words(base.catalogue(), "zzzz") == []
    assert near_words(base.catalogue(), "z" * 1000) == []


@pytest.mark.parametrize(
    ("project", "hint"),
    [("pytroch", "did you mean PyTorch?"), ("nccI", "did you mean NCCL?"), ("zzzz", "NCCL, PyTorch")],
)
def test_an_unknown_project_is_told_what_it_may_be(project: str, hint: str, base: KnowledgeBase) -> None:
    with pytest.raises(QueryError) as error:
        base.search("boom", project=project)
    assert hint in str(error.value.hint)


@pytest.mark.parametrize("project", ["pytorch", "PYTORCH", "PyTorch"])
def test_a_project_in_any_letter_case(project: str, base: KnowledgeBase) -> None:
    assert base.search("boom", project=project).hits


def test_show_at_the_command_line(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_INDEX", str(index))
    several = run_kb("show", "pytorch")
    one = run_kb("show", "fsdp", "save")
    assert one.returncode == 0
    assert "fsdp-save-checkpoint-oom#1" in one.stdout
    assert run_kb("show", "--json", "fsdp", "save").returncode == 0
    assert several.returncode == 1
    assert len(several.stdout.splitlines()) > 3
    assert all("pytorch" in line for line in several.stdout.splitlines())
    assert run_kb("show", "--json", "pytorch").stdout == ""
    typo = run_kb("show", "fdsp")
    assert typo.returncode == 66
    assert "did you mean fsdp?" in typo.stderr
