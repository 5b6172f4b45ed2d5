"""The world as it is, against the shipped articles: logs of healthy programs, of ordinary failures that no article is
about, of known issues; and messages of commands and small programs that failed. cases/world/logs/known/known.json:
log -> the issues that are right."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kb import KnowledgeBase
from kb.cli.run import _ask
from kb.components import is_present
from kb.evaluate import read_questions
from kb.records import SearchResult, Verdict
from kb.scan import Scanner
from kb.search.explain import explain

pytestmark = pytest.mark.thorough  # test_first_look.py asks some of it

WORLD = Path(__file__).parents[1] / "cases" / "world"
LOGS = {kind: sorted((WORLD / "logs" / kind).glob("*.log")) for kind in ("healthy", "ordinary", "known")}
RIGHT: dict[str, list[str]] = json.loads((WORLD / "logs" / "known" / "known.json").read_text("utf-8"))


@pytest.fixture(scope="module")
def base(shipped_index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(shipped_index) as opened:
        yield opened


@pytest.fixture(scope="module")
def search(base: KnowledgeBase) -> Callable[[str], SearchResult]:
    """Several tests ask the same lines."""
    return cache(lambda text: base.search(text, 1))


@pytest.fixture(scope="module")
def run(base: KnowledgeBase) -> Callable[..., Any]:
    """What `kb run COMMAND` makes of an output."""
    return cache(lambda output, *command: _ask(base, output.encode(), command, None))


class Said(NamedTuple):
    """What each door says of one log."""

    search: tuple[Verdict, str]
    explain: tuple[Verdict, str]
    scan: list[str]
    leads: list[str]
    """where the issues with many causes lead that `kb scan` finds"""


@pytest.fixture(scope="module")
def said(base: KnowledgeBase) -> dict[str, Said]:
    scanner = Scanner(base.searcher)
    found = {}
    for path in (path for paths in LOGS.values() for path in paths):
        log = path.read_bytes()
        result, explanation = base.search(log.decode("utf-8")), explain(base, log)
        assert explanation.record is not None
        taking_part = is_present(explanation.record, log.decode("utf-8"))  # as `kb run` demands
        verdict = "likely" if explanation.answered and not taking_part else explanation.verdict
        findings = scanner.scan([log]).findings
        found[path.name] = Said(
            (result.verdict, result.hits[0].issue),
            (verdict, explanation.record.issue),
            [finding.issue for finding in findings if not finding.record.branches],
            [way for finding in findings for way in (finding.issue, *(b.issue for b in finding.record.branches))],
        )
    return found


@pytest.mark.parametrize("kind", ["healthy", "ordinary"])
def test_no_door_knows_what_no_article_is_about(kind: str, said: dict[str, Said]) -> None:
    assert len(LOGS[kind]) >= (20)
    alarms = {
        path.name: one
        for path in LOGS[kind]
        for one in [said[path.name]]
        if "known" in (one.search[0], one.explain[0]) or one.scan or one.leads
    }
    assert alarms == {}


@pytest.mark.thorough
@pytest.mark.parametrize("form", ["docker", "google"])
def test_a_log_of_json_objects_says_what_it_says_plain(form: str, said: dict[str, Said], base: KnowledgeBase) -> None:
    """What is known; what is likely may hang on the objects' other words."""
    scanner = Scanner(base.searcher)
    for path in [path for paths in LOGS.values() for path in paths][::3]:
        lines = path.read_text("utf-8").splitlines()
        log = "\n".join(json.dumps(_as_object(line, form)) for line in lines) + "\n"
        result = base.search(log)
        known = result.hits[0].issue if result.answered else None
        assert known == (said[path.name].search[1] if said[path.name].search[0] == "known" else None), path.name
        found = [one.issue for one in scanner.scan([log.encode()]).findings if not one.record.branches]
        assert found == said[path.name].scan, path.name


def _as_object(line: str, form: str) -> dict[str, str]:
    at = "2026-01-02T10:00:00.1Z"
    if form == "docker":
        return {"log": f"{line}\n", "stream": "stderr", "time": at}
    return {"severity": "ERROR", "textPayload": line, "timestamp": at}


def test_hardly_a_healthy_log_is_even_likely_anything(said: dict[str, Said]) -> None:
    likely = [path.name for path in LOGS["healthy"] if said[path.name].search[0] != "unknown"]
    assert len(likely) <= 0.05 * len(LOGS["healthy"]), likely


def test_every_door_knows_what_an_article_is_about(said: dict[str, Said]) -> None:
    assert len(RIGHT) == len(LOGS["known"]) >= 30
    wrong = {
        "search": [name for name, right in RIGHT.items() if not _is_right(said[name].search, right)],
        "explain": [name for name, right in RIGHT.items() if not _is_right(said[name].explain, right)],
        "scan": [name for name in RIGHT if not {*said[name].scan, *said[name].leads} & {*RIGHT[name]}],
        "scan finds another": [name for name in RIGHT if {*said[name].scan} - {*RIGHT[name]}],
    }
    for names in wrong.values():
        assert len(names) <= 0.05 * len(RIGHT), wrong


def _is_right(one: tuple[Verdict, str], right: list[str]) -> bool:
    return one[0] == "known" and one[1] in right


def test_the_doors_agree(said: dict[str, Said]) -> None:
    for path in (path for paths in LOGS.values() for path in paths):
        one = said[path.name]
        if one.search[0] == "known" or one.explain[0] == "known":
            assert one.search == one.explain, path.name
    apart = [
        name
        for name in RIGHT
        if said[name].search[0] == "known" and said[name].search[1] not in [*said[name].scan, *said[name].leads]
    ]
    assert len(apart) <= 0.05 * len(RIGHT), apart


@pytest.fixture(scope="module")
def everyday(search: Callable[[str], SearchResult], run: Callable[..., Any]) -> tuple[int, list[str], list[str]]:
    """How many there are; those that a search knows; those of which `kb run` would speak."""
    lines = [json.loads(line) for line in (WORLD / "everyday.jsonl").read_text("utf-8").splitlines()]
    foreign = [one for one in lines if one["issue"] is None]
    searched = [one["id"] for one in foreign if search(one["query"]).answered]
    spoken = [one["id"] for one in foreign if run(one["query"], *one.get("command", "").split()).verdict == "known"]
    return len(lines), searched, spoken


def test_kb_run_speaks_of_no_everyday_failure(everyday: tuple[int, list[str], list[str]]) -> None:
    """A component of the issue must be there."""
    assert everyday[0] > 250
    assert everyday[2] == []


def foreign_lines(path: Path) -> list[str]:
    found = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [one["query"] for one in found if one["issue"] is None]


@pytest.mark.thorough
@pytest.mark.parametrize("folder", ["world", "held"])
def test_kb_run_compares_few_everyday_failures(folder: str, run: Callable[..., Any]) -> None:
    """It says so of a line that is like one of a known issue, whose software nothing names. Totals alone."""
    questions = [one for path in (WORLD.parent / folder).glob("everyday*.jsonl") for one in foreign_lines(path)]
    compared = sum(run(one).resembles for one in questions)
    assert len(questions) > 200
    assert compared <= 0.03 * len(questions)


def test_a_search_knows_few_everyday_failures(everyday: tuple[int, list[str], list[str]]) -> None:
    """Some print an article's error line word for word (`pop from an empty deque`, `Floating point exception`)."""
    count, searched, _ = everyday
    assert len(searched) <= 0.03 * count, searched


@pytest.mark.parametrize(("folder", "at_most", "at_least"), [("world", 0.04, 0.75), ("held", 0.05, 0.75)])
def test_lines_of_other_software(
    folder: str, at_most: float, at_least: float, search: Callable[[str], SearchResult]
) -> None:
    """Totals alone, and nothing was fitted on those of `held`: nobody mends single lines of them."""
    (path,) = (WORLD.parent / folder).glob("everyday-*.jsonl")
    questions = read_questions(path.read_bytes(), str(path))
    known = {one.id: result.hits[0].issue for one in questions if (result := search(one.query)).answered}
    foreign, own = ([one for one in questions if bool(one.wanted) == wanted] for wanted in (False, True))
    assert sum(one.id in known for one in foreign) <= at_most * len(foreign)
    assert sum(known.get(one.id) in one.wanted for one in own) >= at_least * len(own)


def test_what_programs_print_at_every_door(base: KnowledgeBase, run: Callable[..., Any]) -> None:
    """Commands, exceptions, healthy logs, ordinary failures and logs of known issues, written by somebody who did not
    look at the other cases. Totals alone, as above. When first asked, search knew three wrongly, scan two, run none."""
    path = WORLD.parent / "held" / "printed.jsonl"
    questions, scanner = read_questions(path.read_bytes(), str(path)), Scanner(base.searcher)
    known: dict[str, dict[str, list[str]]] = {"search": {}, "scan": {}, "run": {}}
    for one in questions:
        if (result := base.search(one.query, 1)).answered:
            known["search"][one.id] = [result.hits[0].issue]
        findings = scanner.scan([one.query.encode()]).findings
        known["scan"][one.id] = [finding.issue for finding in findings if finding.verdict == "known"]
        answer = run(one.query, "sh", "-c", "cat log; exit 1")
        if answer.verdict == "known" and answer.record:
            known["run"][one.id] = [answer.record.issue]
    foreign, own = ([one for one in questions if bool(one.wanted) == wanted] for wanted in (False, True))
    for door, least in (("search", 0.85), ("scan", 0.85), ("run", 0.7)):
        assert sum(bool(known[door].get(one.id)) for one in foreign) <= 0.01 * len(foreign), door
        right = sum(bool({*known[door].get(one.id, [])} & {*one.wanted}) for one in own)
        assert right >= least * len(own), door


def test_a_search_knows_one_in_a_hundred_everyday_failures(everyday: tuple[int, list[str], list[str]]) -> None:
    count, searched, _ = everyday
    assert len(searched) <= 0.01 * count, searched
