"""known, likely, unknown: what each door says. The confidence is set by hand, so that the weights do not matter."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from click.testing import CliRunner, Result

from kb import KnowledgeBase
from kb.brief import known_issue, likely_issues, likely_lines, tells_apart
from kb.cli import cli
from kb.hooks import guard
from kb.hooks.hint import hint, is_failure
from kb.records import Hit, IssueRecord, SearchResult, Verdict
from kb.run.nested import first_line, unknown_line, without_explanations
from kb.scan import Finding
from kb.search import searcher
from kb.search.evidence import NAMES
from kb.why import EVIDENCE, why, why_lines

CONFIDENCE: dict[Verdict, float] = {"known": 0.95, "likely": 0.3, "unknown": 0.05}
QUESTIONS = {"en": "IndexError: pop from an empty deque in deepspeed", "zh": "deepspeed 训练报 pop from an empty deque"}
LANGS = sorted(QUESTIONS)


@pytest.fixture(params=get_args(Verdict))
def said(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Verdict:
    """Every hit has the confidence of this verdict."""
    monkeypatch.setattr(searcher, "confidence", lambda found, curve: CONFIDENCE[request.param])
    monkeypatch.setattr(searcher, "of_a_repeated_line", lambda confidence, share, others: confidence)
    verdict: Verdict = request.param
    return verdict


@pytest.fixture(scope="module")
def base(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as opened:
        yield opened


@pytest.fixture
def kb(index: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    monkeypatch.setenv("KB_INDEX", str(index))
    return lambda *arguments, **options: CliRunner().invoke(cli, arguments, **options)


# --- the command line -----------------------------------------------------------------------------------------------

SHOWN = {
    ("en", "known"): ("In short: ", "Try first:", "kb show '"),
    ("en", "likely"): ("Not certain: it may be one of these.", "How to tell: ", "kb show '"),
    ("en", "unknown"): ("Not known:", "What may help: ", "kb scan LOG", "The nearest"),
    ("zh", "known"): ("一句话：", "先试：", "kb show '"),
    ("zh", "likely"): ("不能确定，可能是下面几个问题之一：", "如何判断：", "kb show '"),
    ("zh", "unknown"): ("未收录", "可以这样再试：", "kb scan LOG", "最接近的"),
}


@pytest.mark.parametrize("lang", LANGS)
def test_kb_search(lang: str, said: Verdict, kb: Callable[..., Result]) -> None:
    ended = kb("search", QUESTIONS[lang])
    assert ended.exit_code == (0 if said == "known" else 1)
    for words in SHOWN[lang, said]:
        assert words in ended.output
    assert ended.output.count("kb show '") == {"known": 1, "likely": 3, "unknown": 1}[said]


def test_kb_search_json(said: Verdict, kb: Callable[..., Result]) -> None:
    ended = kb("search", "--json", QUESTIONS["en"])
    answer = json.loads(ended.stdout)
    assert ended.exit_code == (0 if said == "known" else 1)
    assert (answer["answered"], answer["verdict"]) == (said == "known", said)
    assert answer["likely"] == ([one["issue"] for one in answer["results"][:3]] if said == "likely" else [])
    for one in answer["results"]:
        assert isinstance(one["only_when"], str) and isinstance(one["confusable"], str)
        assert "why" not in one


@pytest.mark.parametrize("lang", LANGS)
def test_why(lang: str, said: Verdict, kb: Callable[..., Result]) -> None:
    ended = kb("search", "--why", "-k", "2", QUESTIONS[lang])
    assert ended.output.count({"en": "Why ", "zh": "依据如下"}[lang]) == 2


def test_why_as_json(said: Verdict, kb: Callable[..., Result]) -> None:
    for arguments in (["--why"], ["--why", "--batch", "-"]):
        question = [QUESTIONS["en"]] if arguments == ["--why"] else []
        line = json.dumps({"id": 1, "query": QUESTIONS["en"]})
        answer = json.loads(kb("search", "--json", *arguments, *question, input=line).stdout)
        for one in answer["results"]:
            assert one["why"].keys() == {"evidence", "conditions", "conflicts", "ruled_out", "voices"}
            assert one["why"]["evidence"].keys() == set(NAMES)
            weights = [abs(counted["weight"]) for counted in one["why"]["evidence"].values()]
            assert weights == sorted(weights, reverse=True)


def test_every_kind_of_evidence_has_a_name_in_plain_words() -> None:
    for names in EVIDENCE.values():
        assert names.keys() == set(NAMES)
        assert len(set(names.values())) == len(NAMES)


# --- what tells issues apart ----------------------------------------------------------------------------------------


@pytest.fixture
def hit(base: KnowledgeBase) -> Hit:
    return base.search(QUESTIONS["en"], 1).hits[0]


def _record(hit: Hit, issue: str, **fields: Any) -> IssueRecord:
    empty = {"only_when": "", "confusable": "", "symptom": "It stops at once. Then it ends."}
    return replace(hit.record, issue=issue, **{**empty, **fields})


@pytest.mark.parametrize(
    ("own", "confusable", "told"),
    [
        ({"only_when": "- `seqnum < 100`: it hangs first. More."}, "", "`seqnum < 100`: it hangs first."),
        (
            {"only_when": "- `numel == 1`: a barrier.\n- `seqnum < 9`: at the\n  start."},
            "",
            "`numel == 1`: a barrier. `seqnum < 9`: at the start.",
        ),
        ({}, "- A hang inside one machine: [`a#1`](a.md).", "A hang inside one machine"),
        ({}, "- Other: [`b#1`](b.md).\n- It hangs, see\n  [`a#1`](a.md).", "It hangs"),
        ({}, "- 只有跨机器才卡：见 [`a#1`](a.md)。", "只有跨机器才卡"),
        ({}, "- 编译过：见 [`b#1`](b.md)；DDP 的前缀：见 [`a#1`](a.md)。", "DDP 的前缀"),
        ({}, "- [`a#1`](a.md): nothing before the link", "It stops at once."),
        ({}, "- of another: [`a#12`](a.md)", "It stops at once."),
        ({}, "", "It stops at once."),
        ({"symptom": "It prints:\n\n```\nboom\n```\n"}, "", "It prints"),
    ],
)
def test_what_tells_it_apart(own: dict[str, str], confusable: str, told: str, hit: Hit) -> None:
    assert tells_apart(_record(hit, "a#1", **own), [_record(hit, "c#1", confusable=confusable)]) == told


def test_a_likely_list(hit: Hit) -> None:
    one = replace(hit, issue="a#1", confidence=0.31, record=_record(hit, "a#1", only_when="- `numel == 1`: a barrier."))
    other = replace(hit, issue="b#1", confidence=0.25, record=_record(hit, "b#1"))
    lines = likely_lines([one, other], 200)
    assert [line.split()[0] for line in lines] == ["31%", "How", "25%", "How"]
    assert likely_issues([one])[0] == "kb: likely · Not certain: it may be this issue."
    assert likely_issues([one, other])[0] == "kb: likely · Not certain: it may be one of these."
    assert likely_issues([one, other])[-2:] == [
        "  kb show 'a#1'   shows the whole of it",
        "  kb show 'b#1'   shows the whole of it",
    ]


def test_why_says_conditions_and_codes(hit: Hit, base: KnowledgeBase) -> None:
    record = replace(hit.record, conditions=("seqnum < 100", "numel == 1"), errors=("error 404: HTTP status 404",))
    query = base.search("WorkNCCL(SeqNum=300, OpType=ALLREDUCE) failed with HTTP status 401").query
    ruled_out = replace(hit, record=record, ruled_out=True)
    found = why(query, ruled_out)
    assert found["conditions"] == {"seqnum < 100": False, "numel == 1": None}
    assert found["conflicts"] == {"http": {"question": ["401"], "issue": ["404"]}}
    assert found["ruled_out"] is True
    told = "\n".join(why_lines(query, ruled_out))
    for words in ("seqnum < 100: does not hold", "numel == 1: the question does not say", "401", "404", "ruled out"):
        assert words in told
    assert "不成立" in "\n".join(why_lines(replace(query, lang="zh"), ruled_out))


# --- HTTP and MCP ---------------------------------------------------------------------------------------------------


def test_http(base: KnowledgeBase, said: Verdict) -> None:
    from starlette.testclient import TestClient

    from kb.serve import create_app

    client = TestClient(create_app(base), base_url="http://localhost")
    body = {"query": QUESTIONS["en"], "render": "tree", "why": True}
    for answer in (
        client.post("/api/search", json=body).json(),
        client.get("/api/search", params={"q": QUESTIONS["en"], "render": "tree", "why": "1"}).json(),
    ):
        assert (answer["verdict"], len(answer["likely"])) == (said, 3 if said == "likely" else 0)
        for one in answer["results"]:
            assert ("tells_apart" in one) == (one["issue"] in answer["likely"])
            assert one["why"]["evidence"].keys() == set(NAMES)
    plain = client.get("/api/search", params={"q": QUESTIONS["en"]}).json()
    assert not [one for one in plain["results"] if "why" in one or "tells_apart" in one]
    assert f'kb_questions_total{{verdict="{said}"}} 3.0' in client.get("/metrics").text


def test_mcp(index: Path, said: Verdict) -> None:
    pytest.importorskip("mcp", reason='needs the extra: pip install -e ".[mcp]"')
    from mcp import Client

    from kb.serve.mcp import stdio_server
    from kb.serve.mcp.server import FACTS

    async def ask() -> Any:
        async with Client(stdio_server(lambda: KnowledgeBase.open(index))) as client:
            return await client.call_tool("search_issues", {"query": QUESTIONS["en"]})

    answer = asyncio.run(ask())
    text, facts = answer.content[0].text, (answer.meta or {})[FACTS]
    named = [one["issue"] for one in facts["issues"]]
    assert facts["verdict"] == said
    assert text.startswith({"known": "**Known issue**", "likely": "Not certain", "unknown": "Not known"}[said])
    assert facts["likely"] == (named if said == "likely" else [])
    assert ("Try first" in text) == (said == "known")
    assert ("How to tell" in text) == (said == "likely")
    for issue in facts["likely"]:
        with KnowledgeBase.open(index) as base:
            (record,) = [r for r in base.show(issue) if r.lang == "en"]
        assert f"`{issue}`" in text
        assert record.fix not in text


# --- where nobody asked ---------------------------------------------------------------------------------------------


@pytest.fixture
def deepspeed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that has loaded DeepSpeed."""
    monkeypatch.setitem(sys.modules, "deepspeed", ModuleType("deepspeed"))


@pytest.mark.parametrize("lang", LANGS)
def test_hooks(lang: Any, index: Path, said: Verdict, deepspeed: None) -> None:
    found = hint(guard.Guard(index, lang=lang).ask_in_time(lambda: QUESTIONS["en"], 60))
    if said == "unknown":
        assert found is None
        return
    assert found is not None
    assert found.text.startswith({"known": "kb: known issue", "likely": "kb: likely"}[said])
    assert 1 <= len(found.issues) <= 3
    assert all(f"kb show '{issue}'" in found.text for issue in found.issues)


def test_a_hook_is_silent_where_no_component_is_there(index: Path, said: Verdict) -> None:
    """`deque().pop()` in a game."""
    text = "Traceback (most recent call last):\nIndexError: pop from an empty deque"
    result = guard.Guard(index).ask_in_time(lambda: text, 60)
    assert result is not None
    about_deepspeed = [hit for hit in result.hits if hit.issue == "ms-swift-ovis2-grpo#2"]
    game = replace(result, hits=tuple(about_deepspeed), likely=("ms-swift-ovis2-grpo#2",) if result.likely else ())
    assert hint(game) is None
    assert (hint(game, "site-packages/deepspeed/runtime/engine.py:1: in step") is None) == (said == "unknown")


def _chain(*errors: BaseException) -> BaseException:
    """The last one was raised while the one before it was handled, and so on."""
    for before, after in pairwise(errors):
        after.__context__ = before
    return errors[-1]


def test_what_fails_after_ctrl_c_is_not_asked_about() -> None:
    assert not is_failure(_chain(KeyboardInterrupt(), RuntimeError("DataLoader worker exited"), OSError("closing")))
    assert is_failure(_chain(ValueError("x"), RuntimeError("the step failed")))
    error = ValueError("in a circle")
    assert is_failure(_chain(error, KeyError("x"), error))


@pytest.mark.parametrize(
    ("command", "spoken"),
    [
        ("import deepspeed; echo 'IndexError: pop from an empty deque'; exit 3", True),
        ("echo 'IndexError: pop from an empty deque'; exit 3", False),
    ],
)
def test_kb_run(command: str, spoken: bool, index: Path, said: Verdict) -> None:
    from kb.cli.run import _ask, _print, _write_report
    from kb.run import Outcome

    with KnowledgeBase.open(index) as base:
        answer = _ask(base, b"IndexError: pop from an empty deque\n", ("sh", "-c", command), None)
    expected = said if spoken else "unknown"
    if expected != "likely":
        assert answer.verdict == expected
    assert (answer.verdict == "likely") == bool(answer.likely)
    report = Path("why.json")
    outcome = Outcome(3, b"", True)
    _write_report(report, ("sh",), outcome, answer)
    form = json.loads(report.read_text("utf-8"))
    assert (form["answered"], form["verdict"]) == (answer.verdict == "known", answer.verdict)
    assert form["likely"] == [hit.issue for hit in answer.likely]
    _print(outcome, answer, "")


def test_an_outer_kb_run_drops_every_kind_of_explanation(hit: Hit) -> None:
    shown = "kb show 'a#1'   shows the whole of it\n"
    for explanation in (
        f"{first_line('exit code 3')}\n[X] It stops\n\nFix\n  1. y\n\n{shown}",
        f"{first_line('exit code 3', certain=False)}\nNot certain\n   31%  a#1\n\n{shown}{shown}{shown}",
        f"{unknown_line('exit code 3')}\n",
        f"{unknown_line('exit code 3', 'a line is like one of it: kb show a#1')}\n",
    ):
        for after in ("", "after\n"):
            output, explained = without_explanations(f"before\n{explanation}{after}".encode())
            assert (output.split(), explained) == (f"before {after}".encode().split(), not after)


def test_findings_have_a_verdict(base: KnowledgeBase, hit: Hit) -> None:
    for confidence, verdict in ((0.9, "known"), (0.3, "likely"), (0.1, "likely")):
        finding = Finding("a#1", hit.record, confidence, 1, 1, 1, 1, "boom", "bundled")
        assert finding.verdict == finding.as_dict()["verdict"] == verdict


def test_the_first_words_are_the_same_in_any_language(base: KnowledgeBase) -> None:
    for record in base.show("ms-swift-ovis2-grpo#2"):
        found = replace(base.search("pop from an empty deque", 1).hits[0], record=record)
        assert known_issue(found)[0].startswith("kb: known issue")
        assert likely_issues([found])[0].startswith("kb: likely · ")


def test_a_likely_answer_names_the_hits_that_are_listed(base: KnowledgeBase, said: Verdict) -> None:
    result: SearchResult = base.search(QUESTIONS["en"], 1)
    assert len(result.likely) == (said == "likely")
