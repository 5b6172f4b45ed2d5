"""Several bases asked together: which ones, in which order, and that each answers as if it were asked alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CORPUS, EMPTY_RECORD

from kb import KnowledgeBase
from kb.bases import Bases, open_bases, opened
from kb.cli import cli
from kb.config import BaseSettings, settings
from kb.errors import IndexMissing, KbError, QueryError
from kb.index import locate, trust
from kb.index.locate import SETTINGS, Location
from kb.index.user import config_folder
from kb.places import places
from kb.records import Hit
from kb.search.same import same_fault

DEQUE = "IndexError: pop from an empty deque"
BUS = (
    "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. "
    "It is possible that dataloader's workers are out of shared memory."
)
NOTHING = "the weather is fine"


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The frozen articles as two bases."""
    folder = tmp_path_factory.mktemp("halves")
    slugs = sorted(path.name for path in (CORPUS / "en").glob("*.md"))
    for name, part in (("one", slugs[::2]), ("two", slugs[1::2])):
        for lang in ("en", "zh"):
            (folder / name / "articles" / lang).mkdir(parents=True)
            for slug in part:
                if (CORPUS / lang / slug).exists():
                    shutil.copy(CORPUS / lang / slug, folder / name / "articles" / lang)
        KnowledgeBase.build(folder / name / "articles", folder / name / "index")
    return folder / "one", folder / "two"


@pytest.fixture
def both(halves: tuple[Path, Path]) -> Iterator[Bases]:
    with open_bases([str(half) for half in halves]) as found:
        assert isinstance(found, Bases)
        yield found


def _seen(hit: Hit) -> Hit:
    return replace(hit, rank=0)


# --- which ones -----------------------------------------------------------------------------------------------------


def _names(found: object) -> list[str]:
    assert isinstance(found, list)
    return [place.name or ("bundled" if getattr(place, "bundled", False) else str(place.index)) for place in found]


def test_by_default_the_base_here_and_the_one_that_is_part_of_kb(halves: tuple[Path, Path]) -> None:
    here = Path.cwd()
    assert _names(places()) == ["bundled"]
    shutil.copytree(halves[0] / "articles", here / "articles")
    shutil.copytree(halves[0] / "index", here / "index")
    assert _names(places()) == ["bundled"]  # nobody trusts it yet
    trust.remember(here, True)
    assert _names(places()) == [str(here / "index"), "bundled"]


def _own(text: str) -> None:
    path = config_folder() / SETTINGS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    settings.cache_clear()


def test_kb_toml_adds_bases_and_may_give_an_order(halves: tuple[Path, Path]) -> None:
    bases = f'[bases]\none = "{halves[0]}"\nteam = "http://kb.intern:8000"\n'
    _own(bases)
    assert _names(places()) == ["one", "team", "bundled"]
    _own(bases + '[search]\norder = ["bundled", "one"]\n')
    assert _names(places()) == ["bundled", "one"]
    assert _names(places(["team"])) == ["team"]


def test_the_environment_and_the_caller_come_first(halves: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _own(f'[bases]\none = "{halves[0]}"\n')
    monkeypatch.setenv("KB_BASES", f"one, {halves[1]}")
    assert _names(places()) == ["one", str(halves[1] / "index")]
    monkeypatch.setenv("KB_INDEX", str(halves[1]))
    assert _names(places()) == ["one", str(halves[1] / "index")]
    monkeypatch.delenv("KB_BASES")
    assert _names(places()) == [str(halves[1] / "index")]
    assert _names(places(["one"])) == ["one"]
    assert _names(places(index=halves[0])) == [str(halves[0] / "index")]


def test_a_base_that_is_named_twice_is_asked_once(halves: tuple[Path, Path]) -> None:
    assert len(places([str(halves[0]), str(halves[0] / "index"), f"{halves[0]}/"])) == 1


def test_what_cannot_be_meant_is_an_error(halves: tuple[Path, Path]) -> None:
    _own(f'[bases]\nstorage = "{halves[0]}"\n')
    with pytest.raises(IndexMissing) as caught:
        places(["storaeg"])
    assert caught.value.hint == "did you mean storage?"
    with pytest.raises(IndexMissing, match="no base at or above"):
        places(["here"])
    with pytest.raises(QueryError):
        open_bases(["bundled"], index=halves[0])


@pytest.mark.parametrize("name", ["", "http://me:secret@host/", "http://", "http://host:99999", "https://a b/"])
def test_an_address_that_is_none_is_told_at_once_and_not_repeated(name: str) -> None:
    with pytest.raises(QueryError) as caught:
        open_bases([name])
    assert "secret" not in f"{caught.value} {caught.value.hint}"


def test_one_base_alone_is_no_layer(halves: tuple[Path, Path]) -> None:
    with open_bases([str(halves[0])]) as base:
        assert isinstance(base, KnowledgeBase)


# --- answers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("question", [DEQUE, BUS, "loss 变成 nan", "exit code -9", NOTHING])
def test_each_base_answers_as_if_it_were_asked_alone(both: Bases, halves: tuple[Path, Path], question: str) -> None:
    alone: dict[tuple[str, str], Hit] = {}
    for half in halves:
        with KnowledgeBase.open(half) as base:
            alone |= {(hit.base, hit.issue): hit for hit in base.search(question, 8).hits}
    answer = both.search(question, 8)
    assert [hit.rank for hit in answer.hits] == list(range(1, len(answer.hits) + 1))
    for hit in answer.hits:
        assert _seen(hit) == _seen(alone[hit.base, hit.issue])
    rest = [round(hit.confidence, 4) for hit in answer.hits[1:] if not hit.ruled_out]
    assert rest == sorted(rest, reverse=True)
    assert {*answer.bases} == {str(half / "index") for half in halves}


@pytest.mark.parametrize("question", [DEQUE, BUS])
def test_the_base_that_knows_gives_the_verdict(both: Bases, halves: tuple[Path, Path], question: str) -> None:
    verdicts = {}
    for half in halves:
        with KnowledgeBase.open(half) as base:
            verdicts[base.name] = base.search(question)
    knowing = [answer for answer in verdicts.values() if answer.answered]
    assert len(knowing) == 1
    answer = both.search(question)
    assert answer.answered
    assert answer.hits[0].issue == knowing[0].hits[0].issue
    assert not both.search(NOTHING).answered


def test_a_fault_that_two_bases_know_is_one_answer(halves: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(halves[0], tmp_path / "copy")
    with open_bases([str(halves[0]), str(tmp_path / "copy")]) as base:
        for question in (DEQUE, BUS, "exit code -9"):
            issues = [hit.issue for hit in base.search(question, 10).hits]
            assert len(issues) == len({*issues})


def test_a_project_that_only_one_base_has(both: Bases) -> None:
    answer = both.search(DEQUE, project="ms-swift")
    assert answer.answered
    with pytest.raises(QueryError, match="no article is about"):
        both.search(DEQUE, project="COBOL")
    assert dict(both.projects())["ms-swift"] >= 1


def test_show_and_catalogue_look_in_every_base(both: Bases, halves: tuple[Path, Path]) -> None:
    sizes = []
    for half in halves:
        with KnowledgeBase.open(half) as base:
            sizes.append(base.size)
            record = base.records()[-1]
            assert both.show(record.issue) == base.show(record.issue)
    assert both.size == sum(sizes) == len(both.catalogue().issues)
    with pytest.raises(IndexMissing):
        both.show("there-is-none#1")


def test_scan_finds_the_issues_of_every_base(both: Bases) -> None:
    log = ["step 1 ok", DEQUE, "step 2 ok", BUS, "done"]
    found = both.scan(log).findings
    assert [finding.first_line for finding in found] == [2, 4]
    assert len({finding.base for finding in found}) >= 1
    assert both.scan(["step 1 ok", "done"]).findings == ()


def test_a_scan_over_two_copies_finds_each_issue_once(halves: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(halves[0], tmp_path / "copy")
    with KnowledgeBase.open(halves[0]) as alone, open_bases([str(halves[0]), str(tmp_path / "copy")]) as base:
        log = [DEQUE, "x", BUS, DEQUE]
        assert base.scan(log).findings == alone.scan(log).findings


def test_a_base_that_cannot_be_opened_is_named_and_the_others_answer(halves: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(halves[1] / "index", broken)
    (broken / "manifest.json").write_text("{}")
    with open_bases([str(halves[0]), str(broken)]) as base:
        answer = base.search(DEQUE)
        assert answer.answered or answer.hits
        assert [silence.base for silence in answer.silent] == [str(broken)]
        assert answer.as_dict()["silent"][0]["why"]
    with pytest.raises(KbError):
        opened([Location(broken, None, False, named=True)])


def test_the_answer_is_json(both: Bases) -> None:
    form = both.search(DEQUE).as_dict()
    assert json.loads(json.dumps(form)) == form
    assert {one["base"] for one in form["results"]} <= {*form["bases"]}


# --- the same fault -------------------------------------------------------------------------------------------------

FAULT = replace(
    EMPTY_RECORD,
    title="NCCL watchdog timeout",
    errors=("Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12)",),
    fix="Set `TORCH_NCCL_BLOCKING_WAIT=1` and raise the timeout of init_process_group.",
)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({}, True),
        ({"title": "nccl  Watchdog timeout", "fix": "", "errors": ()}, True),
        ({"title": "The watchdog ends a run", "errors": (FAULT.errors[0].replace("12", "99"),)}, True),
        ({"title": "A dead link", "fix": "Replace the InfiniBand cable of the node that is named."}, False),
        ({"title": "Out of memory", "errors": ("CUDA out of memory",)}, False),
    ],
)
def test_one_fault_or_two(change: dict[str, object], same: bool) -> None:
    other = replace(FAULT, **change)  # type: ignore[arg-type]
    assert same_fault(FAULT, other) is same
    assert same_fault(other, FAULT) is same


def test_places_are_folders_or_addresses() -> None:
    found = places(["bundled", "http://127.0.0.1:9/"])
    assert isinstance(found[0], Location)
    assert found[1] == BaseSettings("http://127.0.0.1:9/", url="http://127.0.0.1:9")
    assert locate.bundled().bundled


@pytest.mark.parametrize("options", [[], ["--full"]])
@pytest.mark.parametrize("question", [DEQUE, "saving a checkpoint of the model takes long"])
def test_every_hit_says_from_which_base_it_comes(question: str, options: list[str], halves: tuple[Path, Path]) -> None:
    _own(f'[bases]\none = "{halves[0]}"\ntwo = "{halves[1]}"\n')
    with open_bases(["one", "two"]) as found:
        first, *_ = found.search(question).hits
    assert first.confidence > 0.01
    shown = CliRunner().invoke(cli, ["search", *options, "--base", "one", "--base", "two", question]).output
    assert f"base: {first.base}" in shown
    assert "base: " not in CliRunner().invoke(cli, ["search", *options, "--base", first.base, question]).output


# --- kb info --------------------------------------------------------------------------------------------------------


def test_info_says_which_bases_answer(halves: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    from kb.cli.info import info

    _own(f'[bases]\none = "{halves[0]}"\ngone = "/nowhere"\n')
    arguments = ["--json", "--base", "one", "--base", "gone"]
    with pytest.raises(SystemExit, match="1"):
        info.main(arguments, standalone_mode=False)
    form = json.loads(capsys.readouterr().out)
    one, gone = form["bases"]
    with KnowledgeBase.open(halves[0]) as base:
        assert (one["name"], one["issues"], one["snapshot"]) == ("one", base.size, base.snapshot)
        assert (one["encoder"], one["error"]) == ("kb-static", None)
    assert gone["name"] == "gone"
    assert gone["error"]
    assert form["settings"] == [str(config_folder() / SETTINGS)]
    with pytest.raises(SystemExit, match="1"):
        info.main(["--base", "one", "--base", "gone"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert "1. one" in printed
    assert "does not answer" in printed


# --- what kb.toml says of a folder ----------------------------------------------------------------------------------


def test_projects_and_language_of_a_folder_come_from_kb_toml(tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    (pages / "longhorn").mkdir(parents=True)
    symptom = "### Symptom\n\n```\nError: volume is not ready\n```\n"
    text = f"# Volume\n\n## Volume does not attach\n\n{symptom}\n### Fix\n\n1. Wait.\n"
    (pages / "longhorn" / "volume.md").write_text(text, "utf-8")
    _own(f'[bases.docs]\nfolder = "{pages}"\nprojects = {{ "longhorn/" = "Longhorn" }}\n')
    with open_bases(["docs"]) as base:
        assert base.projects() == [("Longhorn", 1)]
        (record,) = base.show("longhorn-volume")
        assert (record.project, record.lang) == ("Longhorn", "en")
    _own(f'[bases.docs]\nfolder = "{pages}"\nlang = "zh"\nprojects = {{ "longhorn/" = "CSI" }}\n')
    with open_bases(["docs"]) as base:  # the index in the cache is made anew
        (record,) = base.records()
        assert (record.project, record.lang) == ("CSI", "zh")
