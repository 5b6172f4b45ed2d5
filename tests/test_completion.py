"""What TAB offers, asked as the scripts of the shells ask."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import article, run_kb

from kb import KnowledgeBase
from kb.index.names import issues_of, projects_of


def _offered(*words: str, shell: str = "bash", **environment: str) -> list[str]:
    asked = {
        "_KB_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(["kb", *words]),
        "COMP_CWORD": words[-1] if shell == "fish" else str(len(words)),
    }
    ran = run_kb(stdin=None, **asked, **environment)
    assert ran.stderr == ""
    return [line.removeprefix("plain,") for line in ran.stdout.splitlines() if line]


def test_ids_and_projects_are_those_of_the_opened_base(index: Path) -> None:
    with KnowledgeBase.open(index) as base:
        catalogue = base.catalogue()
        assert [(r.issue, r.lang, r.title) for r in catalogue.records] == [tuple(one) for one in issues_of(index)]
        assert sorted(name for name, _ in catalogue.projects) == projects_of(index)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["show", "cuda-"], ["cuda-ecc-uncorrectable#1", "cuda-invalid-device-ordinal#1"]),
        (["show", "CUDA-ECC"], ["cuda-ecc-uncorrectable#1"]),
        (["show", "xid79"], ["gpu-fell-off-bus-xid79#1"]),
        (["show", "zzzz"], []),
        (["search", "--project", "nvi"], [r"NVIDIA\ driver"]),
        (["scan", "--project", "ms-"], ["ms-swift"]),
        (["sea"], ["search"]),
    ],
    ids=str,
)
def test_bash_is_offered(words: list[str], offered: list[str], index: Path) -> None:
    assert _offered(*words, KB_INDEX=str(index)) == offered


def test_zsh_and_fish_get_titles(index: Path) -> None:
    title = "CUDA error: uncorrectable ECC error encountered"
    assert _offered("show", "cuda-e", shell="fish", KB_INDEX=str(index)) == [f"cuda-ecc-uncorrectable#1\t{title}"]
    assert _offered("show", "cuda-e", shell="zsh", KB_INDEX=str(index)) == ["plain", "cuda-ecc-uncorrectable#1", title]


def test_the_options_that_stand_before_count(index: Path) -> None:
    assert _offered("show", "--index", str(index), "cuda-e") == ["cuda-ecc-uncorrectable#1"]


@pytest.mark.parametrize("damage", ["missing", "manifest", "records", "kb.toml"])
def test_nothing_is_offered_and_nothing_said_when_something_is_wrong(damage: str, tmp_path: Path, index: Path) -> None:
    folder = tmp_path / "index"
    if damage != "missing":
        shutil.copytree(index, folder)
        damaged = {"manifest": folder / "manifest.json", "records": next(folder.glob("records-*"))}
        if damage == "kb.toml":
            (tmp_path / "config" / "kb-issues").mkdir(parents=True)
            (tmp_path / "config" / "kb-issues" / "kb.toml").write_text("nonsense =")
            assert _offered("show", "cuda", XDG_CONFIG_HOME=str(tmp_path / "config")) == []
            return
        damaged[damage].write_bytes(b"\x00{")
    assert _offered("show", "cuda", KB_INDEX=str(folder)) == []


def test_a_hostile_id_reaches_no_shell(tmp_path: Path) -> None:
    articles = tmp_path / "articles" / "en"
    articles.mkdir(parents=True)
    for name in ("evil$(touch pwned).md", "evil`id`.md", "evil;x.md", "evil-good.md"):
        (articles / name).write_text(article("boom"))
    KnowledgeBase.build(tmp_path / "articles", tmp_path / "index", keep_going=True)
    for word in _offered("show", "evil", KB_INDEX=str(tmp_path / "index")):
        said = subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True, text=True, check=True).stdout
        assert said.startswith("evil")
        assert "uid=" not in said
    assert not (Path.cwd() / "pwned").exists()


def test_completion_loads_nothing_heavy(index: Path) -> None:
    code = (
        "import sys\nfrom kb.cli.complete import complete_issue\nimport click\nc = click.Context(click.Command('x'))\n"
    )
    code += f"c.params['index'] = {str(index)!r}\nassert complete_issue(c, None, 'cuda')\n"
    code += "print(sorted({'numpy', 'faiss', 'rich'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
