"""Votes and misses: what is kept, how far voices move an answer, and that one person moves nothing."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import CORPUS
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

from kb import KnowledgeBase
from kb.cli import cli
from kb.config import settings
from kb.errors import FeedbackError, IndexMissing, QueryError
from kb.feedback import store, voices
from kb.feedback.gaps import gaps
from kb.feedback.gist import Gist, gist, mask_line, unmarked
from kb.feedback.store import Feedback
from kb.feedback.told import address_of, cast, note
from kb.feedback.voices import Voiced, moved, shifted, tally
from kb.logs.read import read
from kb.records import Hit, SearchResult, Voices
from kb.search.verdict import KNOWN_AT, verdict
from kb.serve import create_app

HOME = "http://localhost:8080"
QUESTION = "IndexError: pop from an empty deque"
DEQUE = "ms-swift-ovis2-grpo#2"
UNKNOWN = "RuntimeError: flux capacitor desynchronised after {n} s on node-{n}:29500"


@pytest.fixture(scope="module")
def opened(index: Path) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(index) as base:
        yield base


@pytest.fixture
def base(opened: KnowledgeBase) -> Iterator[KnowledgeBase]:
    yield opened
    opened.votes = None


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "team.feedback"


@pytest.fixture
def heard(file: Path) -> Iterator[Feedback]:
    feedback = Feedback(file)
    yield feedback
    feedback.close()


def about(question: str) -> Gist:
    found = gist(read(question))
    assert found is not None
    return found


# --- what is kept of a question -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("connect to gpu-node-17:29500 failed after 300s", "connect to <host> failed after <n>s"),
        ("connect to db01.corp.example.com failed", "connect to <host> failed"),
        ("login failed user=alice token=hf_abcdefghijklmnopqrstuv", "login failed user=<user> token=[masked]"),
        ("mail bob.meyer+x@acme.io", "mail <address>"),
        ("from 10.12.0.4:2222 and [fe80::1ff:fe23:4567:890a%eth2]", "from <address> and [<address>]"),
        ("No such file: '/home/alice smith/secret/ckpt/step-1000'", "No such file: '<path>'"),
        (r"C:\Users\Bob Meyer\proj\train.py is locked", "<path> is locked"),
        ("see https://wiki.acme.cn/secret?x=1 and git@host:/x", "see <url> and <address>:/x"),
        ("libs: /opt/acme/lib/libcudart.so.11.0: cannot open", "libs: <path>/libcudart.so.11.0: cannot open"),
        ("pod trainer-x7-0 on node worker-03 crashed", "pod <host> on node <host> crashed"),
        ("在节点 node-12 上崩溃，用户 zhangsan", "在节点 <host> 上崩溃，用户 <user>"),
        ("job 8812345678 id 3f2a9c1d-aaaa-bbbb-cccc-0123456789ab", "job <n> id <n>"),
        # what tells the failure stays
        ("expected Half, got torch.float16 on cu121", "expected Half, got torch.float16 on cu121"),
        (
            "Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off",
            "Xid (PCI:<n>b:<n>): 79, pid=<n>, GPU has fallen off",
        ),
        ("the process ended with exit code 137 after 12 min", "the process ended with exit code 137 after <n> min"),
        ("KeyError: 'model.layers.12.mlp.weight'", "KeyError: 'model.layers.12.mlp.weight'"),
        ("std::bad_alloc in foo::bar", "std::bad_alloc in foo::bar"),
    ],
)
def test_a_line_is_masked(line: str, kept: str) -> None:
    assert mask_line(line) == kept


def test_only_telling_lines_are_kept() -> None:
    log = "my private note\n" + "step 1 loss 0.4\n" * 50 + "Traceback (most recent call last):\n"
    log += (
        '  File "/home/alice/secret.py", line 3, in main\n    launch(password="hunter22")\nValueError: no such thing\n'
    )
    assert about(log).lines == ("ValueError: no such thing",)


def test_a_healthy_log_says_nothing() -> None:
    assert gist(read("INFO step 1 loss 0.4\n" * 40, printed=True)) is None


def test_a_family() -> None:
    """The same line with other numbers, machines and paths; another code is another family."""
    assert about(UNKNOWN.format(n=3)).family == about("[rank7]: " + UNKNOWN.format(n=812)).family
    xid = "NVRM: Xid (PCI:0000:3b:00): {}, pid=77, error"
    assert about(xid.format(79)).family != about(xid.format(31)).family
    assert about(xid.format(79).replace("77", "12")).family == about(xid.format(79)).family


@given(st.text(max_size=400))
def test_any_text_is_masked_in_bounds(text: str) -> None:
    line = mask_line(text)
    assert len(line) <= 300 and "\n" not in line
    json.dumps(line).encode()
    unmarked(line)


# --- voices ---------------------------------------------------------------------------------------------------------

chances = st.floats(0.0, 1.0)
counts = st.integers(0, 60)


@given(chances, counts, counts)
def test_bounds_of_what_voices_do(p: float, helped: int, against: int) -> None:
    """One step of the verdict at most, towards the majority, and nothing for a majority of two or less."""
    now = shifted(p, helped, against, KNOWN_AT)
    assert 0 <= now <= 1
    steps = ["unknown", "likely", "known"]
    step = steps.index(verdict(now)) - steps.index(verdict(p))
    assert abs(step) <= 1
    if abs(helped - against) <= 2:
        assert now == p
    elif helped > against:
        assert now >= p and step >= 0
    else:
        assert now <= p and step <= 0


@given(chances, counts, counts)
def test_one_more_voice_never_does_the_opposite(p: float, helped: int, against: int) -> None:
    if helped > against:  # else the first voices of the other side are not heard
        assert shifted(p, helped + 1, against, KNOWN_AT) >= shifted(p, helped, against, KNOWN_AT) - 1e-12
    if against > helped:
        assert shifted(p, helped, against + 1, KNOWN_AT) <= shifted(p, helped, against, KNOWN_AT) + 1e-12


def test_many_voices_make_the_surest_answer_a_likely_one() -> None:
    assert verdict(shifted(0.999, 0, 10, KNOWN_AT)) == "likely"
    assert verdict(shifted(0.999, 0, 500, KNOWN_AT)) == "likely"
    assert verdict(shifted(0.19, 500, 0, KNOWN_AT)) == "likely"


def test_a_person_counts_once() -> None:
    families = {"a": {"ann": True}, "b": {"ann": True, "bob": False}, "c": {"ann": False}}
    assert tally(families, "a") == (1.0, pytest.approx(voices.OTHERS))  # bob, who spoke about another question
    assert tally(families, None) == (pytest.approx(voices.OTHERS * 2 / 3), pytest.approx(voices.OTHERS * 4 / 3))
    crowd = {"b": {str(n): False for n in range(1000)}}
    assert tally(crowd, "a") == (0.0, pytest.approx(voices.MOST_OTHERS))


def _answer(result: SearchResult, confidences: list[float]) -> SearchResult:
    hits = tuple(replace(result.hits[0], rank=n, issue=f"x#{n}", confidence=p) for n, p in enumerate(confidences, 1))
    return replace(result, hits=hits, verdict=verdict(confidences[0]), likely=())


def _told(hit: Hit, confidence: float) -> Hit:
    return replace(hit, confidence=confidence, voices=Voices(9, 0, hit.confidence))


def test_only_what_moved_changes_its_place(base: KnowledgeBase) -> None:
    """The searcher has orders of its own (a family behind its members): nobody's vote may undo those of others."""
    result = _answer(base.search(QUESTION), [0.6, 0.7, 0.3, 0.4])
    hits = list(result.hits)
    assert moved(result, hits, KNOWN_AT).hits == result.hits
    hits[2] = _told(hits[2], 0.65)
    assert [hit.issue for hit in moved(result, hits, KNOWN_AT).hits] == ["x#1", "x#2", "x#3", "x#4"]
    hits[2] = _told(result.hits[2], 0.75)
    changed = moved(result, hits, KNOWN_AT)
    assert [hit.issue for hit in changed.hits] == ["x#3", "x#1", "x#2", "x#4"]
    assert [hit.rank for hit in changed.hits] == [1, 2, 3, 4]
    hits[2] = replace(_told(result.hits[2], 0.75), ruled_out=True)
    assert moved(result, hits, KNOWN_AT).hits[0].issue == "x#1"


# --- one person cannot turn the base ---------------------------------------------------------------------------------

QUESTIONS = [
    QUESTION,
    "loss becomes nan after the first step of GRPO with one generation",
    "CUDA out of memory while saving a checkpoint",
    "训练刚开始 loss 就是 0，grad_norm 是 nan",
    "DeepSpeed hangs in the second forward pass",
]


def _core(result: SearchResult) -> Any:
    return result.verdict, result.likely, [(hit.issue, hit.confidence, hit.rank) for hit in result.hits]


@pytest.mark.costly
@pytest.mark.parametrize("helped", [True, False])
def test_one_voice_changes_nothing(base: KnowledgeBase, heard: Feedback, helped: bool) -> None:
    """A thousand votes of one address, about every hit of every question and about others, are one voice."""
    before = [_core(base.search(question)) for question in QUESTIONS]
    who = address_of("10.0.0.7")
    votes = [(question, hit.issue) for question in QUESTIONS for hit in base.search(question).hits]
    for n in range(200):
        question, issue = votes[n % len(votes)]
        asked = f"{question} {'x' * (n // len(votes))}".strip()
        cast(heard, base, issue, "helped" if helped else "did_not_fit", who, asked)
    base.votes = Voiced(heard)
    assert [_core(base.search(question)) for question in QUESTIONS] == before


@pytest.mark.parametrize("count", [0, 1, 2])
def test_up_to_two_voices_change_nothing(base: KnowledgeBase, heard: Feedback, count: int) -> None:
    before = _core(base.search(QUESTION))
    for n in range(count):
        cast(heard, base, DEQUE, "did_not_fit", f"address 10.0.0.{n}", QUESTION)
    base.votes = Voiced(heard)
    assert _core(base.search(QUESTION)) == before


def test_many_voices_change_the_answer_and_forgetting_undoes_it(base: KnowledgeBase, heard: Feedback) -> None:
    before = base.search(QUESTION, k=1)
    assert before.verdict == "known" and before.hits[0].issue == DEQUE
    for n in range(12):
        cast(heard, base, DEQUE, "did_not_fit", f"address 10.0.0.{n}", QUESTION)
    base.votes = Voiced(heard)
    after = base.search(QUESTION, k=1)
    assert after.verdict == "likely"
    assert len(after.hits) == 1
    # Another question about the same issue hears them as two voices at most, which is none.
    other = "[rank11]: step_id = self.__step_id_module_fetched_for[sub_module.ds_id].popleft() empty deque"
    assert base.search(other).hits[0].confidence == pytest.approx(_without_votes(base, other).hits[0].confidence)
    for vote in heard.votes():
        heard.forget([vote.id])
    assert _core(base.search(QUESTION, k=1)) == _core(before)


def _without_votes(base: KnowledgeBase, question: str) -> SearchResult:
    return base.searcher.search(question)


def test_voices_are_told_with_why(base: KnowledgeBase, heard: Feedback) -> None:
    from kb.why import why, why_lines

    for n in range(5):
        cast(heard, base, DEQUE, "did_not_fit", f"address 10.0.0.{n}", QUESTION)
    base.votes = Voiced(heard)
    result = base.search(QUESTION)
    hit = next(hit for hit in result.hits if hit.issue == DEQUE)
    assert why(result.read_as, hit)["voices"]["did_not_fit"] == 5
    assert any("5 that it did not fit" in line for line in why_lines(result.read_as, hit))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.7", "10.0.0.7", True),
        ("10.0.0.7", "10.0.0.8", False),
        ("::ffff:10.0.0.7", "10.0.0.7", True),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("testclient", "", False),
    ],
)
def test_who_an_address_is(one: str, other: str, same: bool) -> None:
    assert (address_of(one) == address_of(other)) is same


# --- the file --------------------------------------------------------------------------------------------------------

PEOPLE, ISSUES, ASKED = ["ann", "bob", "eve"], ["a#1", "b#2"], [None, "one error", "another failure"]
steps = st.lists(
    st.tuples(
        st.sampled_from(["helped", "wrong", "take back", "forget all"]),
        st.sampled_from(PEOPLE),
        st.sampled_from(ISSUES),
        st.sampled_from(ASKED),
    ),
    max_size=25,
)


@pytest.mark.thorough
@given(steps)
def test_votes_are_a_set(
    tmp_path_factory: pytest.TempPathFactory, done: list[tuple[str, str, str, str | None]]
) -> None:
    """Whatever is said and taken back: what counts is the newest voice of each person, as a dictionary keeps it."""
    feedback = Feedback(tmp_path_factory.mktemp("votes") / "f.sqlite")
    oracle: dict[tuple[str, str, str], bool] = {}
    for what, person, issue, question in done:
        asked = None if question is None else about(question)
        key = issue, asked.family if asked else "", person
        if what == "forget all":
            assert feedback.forget() == len(oracle)
            oracle.clear()
        elif what == "take back":
            assert feedback.take_back("base", issue, asked, person) == (key in oracle)
            oracle.pop(key, None)
        else:
            feedback.vote("base", issue, asked, person, helped=what == "helped")
            oracle[key] = what == "helped"
        found = {
            (issue, family, person): helped
            for (_, issue), families in feedback.heard().items()
            for family, people in families.items()
            for person, helped in people.items()
        }
        assert found == oracle
    assert {(v.issue, v.family, v.person): v.helped for v in feedback.votes()} == oracle
    feedback.close()


def test_nothing_is_made_before_something_is_said(heard: Feedback) -> None:
    assert heard.heard() == {} and heard.votes() == [] and heard.misses() == []
    assert not heard.path.exists()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
def test_the_file_is_private(heard: Feedback) -> None:
    heard.vote("b", "a#1", None, "ann", helped=True)
    for path in heard.path.parent.glob("team.feedback*"):
        assert path.stat().st_mode & 0o077 == 0
    heard.close()
    heard.path.chmod(0o644)  # a copy of it
    heard.vote("b", "a#1", None, "ben", helped=True)
    assert heard.path.stat().st_mode & 0o077 == 0


def test_no_name_and_no_question_is_in_the_file(base: KnowledgeBase, heard: Feedback) -> None:
    asked = "RuntimeError: cannot reach gpu-node-17:29500, token=hf_abcdefghijklmnopqrstuv, /home/alice/x/y.bin"
    cast(heard, base, DEQUE, "did_not_fit", "address 10.1.2.3", asked)
    note(heard, base.search(UNKNOWN.format(n=4711)), "address 10.1.2.3")
    heard.close()
    data = b"".join(path.read_bytes() for path in heard.path.parent.glob("team.feedback*"))
    for secret in (b"10.1.2.3", b"gpu-node", b"29500", b"hf_abc", b"alice", b"4711"):
        assert secret not in data


@pytest.mark.thorough
def test_two_processes_write(file: Path) -> None:
    code = (
        "import sys\nfrom kb.feedback.store import Feedback\nfrom kb.feedback.gist import Gist\n"
        "f = Feedback(sys.argv[1])\nfor n in range(150):\n"
        "    f.vote('b', f'a#{n % 5 + 1}', Gist(f'{n:016x}', ('x',), 'en'), f.person(sys.argv[2]), helped=n % 2 == 0)\n"
        "    f.note_miss(Gist('f' * 16, ('y',), 'en'), f.person(sys.argv[2]))\n"
    )
    command = [sys.executable, "-c", code, str(file)]
    writers = [subprocess.Popen([*command, who], stderr=subprocess.PIPE) for who in ("ann", "bob", "eve")]
    seen = 0
    reader = Feedback(file)
    while any(writer.poll() is None for writer in writers):
        now = sum(len(people) for families in reader.heard().values() for people in families.values())
        assert now >= seen  # none is lost, and another process's are seen
        seen = now
        time.sleep(0.01)
    assert [writer.communicate()[1].decode() for writer in writers] == [""] * 3
    assert len(reader.votes()) == 450
    (miss,) = reader.misses()
    assert (miss.count, len(miss.askers)) == (450, 3)
    assert sum(len(people) for families in reader.heard().values() for people in families.values()) == 450
    reader.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_goes_on(heard: Feedback) -> None:
    heard.vote("b", "a#1", None, "ann", helped=True)
    child = os.fork()
    if child == 0:
        heard.vote("b", "a#1", None, "bob", helped=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    heard.vote("b", "a#1", None, "eve", helped=True)
    assert len(heard.votes()) == 3


def test_a_file_that_is_deleted_is_forgotten(heard: Feedback) -> None:
    heard.vote("b", "a#1", None, "ann", helped=True)
    for path in [heard.path, *heard.path.parent.glob("team.feedback-*")][:1]:
        path.unlink()
    assert heard.heard() == {} and heard.votes() == []
    heard.vote("b", "a#1", None, "bob", helped=True)
    assert [vote.person for vote in heard.votes()] == ["bob"]


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def _foreign(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE bookmarks (url)")
    database.close()


def _later(path: Path) -> None:
    feedback = Feedback(path)
    feedback.vote("b", "a#1", None, "ann", helped=True)
    feedback.close()
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()


def _torn(path: Path) -> None:
    feedback = Feedback(path)
    for n in range(300):
        feedback.vote("b", f"a#{n}", None, "ann", helped=True)
    feedback.close()
    data = bytearray(path.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    path.write_bytes(data)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("damage", [_garbage, _foreign, _later, _torn, _folder])
def test_a_damaged_file_is_an_error_and_search_goes_on(
    base: KnowledgeBase, file: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    before = _core(base.search(QUESTION))
    damage(file)
    with pytest.raises(FeedbackError) as raised:
        Feedback(file).vote("b", "a#1", None, "ann", helped=True)
    assert raised.value.hint and str(file) in str(raised.value)
    base.votes = Voiced(Feedback(file))
    assert _core(base.search(QUESTION)) == before
    base.search(QUESTION)
    assert len(caplog.records) == 1  # and not with every question


def test_bounds_of_the_file(heard: Feedback, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, most in {"MAX_VOTES": 20, "MAX_VOTES_OF_ONE": 5, "MAX_MISSES": 6, "MAX_MISSES_OF_ONE": 4}.items():
        monkeypatch.setattr(store, name, most)
    heard.vote("b", "first#1", None, "ann", helped=True)
    for n in range(40):
        heard.vote("b", f"a#{n}", None, "eve", helped=False)
    assert sorted(vote.person for vote in heard.votes()) == ["ann", *["eve"] * 5]  # a flood drowns nobody else
    for n in range(40):
        heard.vote("b", "a#1", None, f"p{n}", helped=False)
    assert len(heard.votes()) == 20
    often = Gist("0" * 16, ("often",), "en")
    for who in ("ann", "bob"):
        heard.note_miss(often, who)
    for n in range(40):
        heard.note_miss(Gist(f"{n + 1:016x}", ("once",), "en"), f"p{n % 8}")
    assert len(heard.misses()) == 6 and heard.misses()[0].family == often.family


def test_a_vote_that_makes_no_sense(base: KnowledgeBase, heard: Feedback) -> None:
    with pytest.raises(IndexMissing):
        cast(heard, base, "no-such#1", "helped", "ann")
    with pytest.raises(QueryError):
        cast(heard, base, DEQUE, "perhaps", "ann")  # type: ignore[arg-type]
    assert cast(heard, base, DEQUE.upper(), "helped", "ann") == (DEQUE, voices.OTHERS, 0.0)
    assert not any(vote.lines for vote in heard.votes())


# --- gaps ------------------------------------------------------------------------------------------------------------


def test_gaps_put_the_same_together(base: KnowledgeBase, heard: Feedback) -> None:
    for n in range(6):
        note(heard, base.search(UNKNOWN.format(n=n)), f"address {n}")
    note(heard, base.search("flux capacitor desynchronised, RuntimeError on all nodes"), "address 9")
    note(heard, base.search("PermissionError: the coffee machine refuses milk"), "address 1")
    first, second = gaps(heard.misses(), base)
    assert (first.count, first.askers, len(first.misses)) == (7, 7, 2)
    assert second.count == 1
    heard.dismiss(miss.family for miss in first.misses)
    assert [gap.is_open for gap in gaps(heard.misses(), base)] == [True, False]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("NVRM: Xid (PCI:0000:3b:00): {}, pid=77, error", ("79", "31")),
        ("ModuleNotFoundError: No module named '{}'", ("xformers", "flash_attn")),
        ("AttributeError: 'NoneType' object has no attribute '{}'", ("detach", "shape")),
    ],
)
def test_what_names_something_else_is_another_gap(heard: Feedback, line: str, names: tuple[str, str]) -> None:
    for name in names:
        heard.note_miss(about(line.format(name)), "ann")
    assert len(gaps(heard.misses(), None)) == 2


WRITTEN = """---
project: Flux
---
# Flux
## flux capacitor desynchronised
### Symptom
```
RuntimeError: flux capacitor desynchronised after <n> s on <host>
```
Some seconds after the start the run stops, because the flux capacitor is out of step.
### Cause
The clocks of the nodes differ.
### Fix
1. Start the time service: `systemctl start chronyd`.
"""


@pytest.mark.thorough
def test_a_gap_is_closed_by_an_article(tmp_path: Path, heard: Feedback) -> None:
    """`kb gaps --draft` lays it out, somebody writes it, `kb build`: then the base knows."""
    index, articles = tmp_path / "index", tmp_path / "articles"
    for path in CORPUS.rglob("*.md"):
        target = articles / path.relative_to(CORPUS)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    KnowledgeBase.build(articles, index)
    with KnowledgeBase.open(index) as base:
        for n in range(3):
            note(heard, base.search(UNKNOWN.format(n=n)), f"address {n}")
        assert gaps(heard.misses(), base)[0].is_open
    named = ["--slug", "flux", "--project", "Flux", "--articles", str(articles), "--file", str(heard.path)]
    ran = _run("gaps", "--draft", "1", *named, "--index", str(index))
    assert ran.exit_code == 0, ran.output
    drafted = (articles / "en" / "flux.md").read_text("utf-8")
    assert "RuntimeError: flux capacitor desynchronised after <n> s on <host>\n```" in drafted
    (articles / "en" / "flux.md").write_text(WRITTEN, "utf-8")
    (articles / "zh" / "flux.md").unlink()
    KnowledgeBase.build(articles, index)
    with KnowledgeBase.open(index) as base:
        (gap,) = gaps(heard.misses(), base)
    assert (gap.verdict, gap.issue, gap.is_open) == ("known", "flux#1", False)


# --- doors -----------------------------------------------------------------------------------------------------------


def _run(*arguments: str, **environment: str) -> Result:
    settings.cache_clear()
    return CliRunner().invoke(cli, [*arguments], env=environment or None)


def test_the_command_line(index: Path, file: Path) -> None:
    where = ["--index", str(index)]
    for verb, said in (("helped", "1 say it helped"), ("wrong", "1 that it did not fit")):
        ran = _run("feedback", verb, DEQUE, "--question", QUESTION, "--file", str(file), *where)
        assert ran.exit_code == 0 and said in ran.output, ran.output
    listed = json.loads(_run("feedback", "list", "--json", "--file", str(file)).stdout)
    assert [(one["verdict"], one["lines"]) for one in listed] == [("did_not_fit", [QUESTION])]  # the newest counts
    assert _run("feedback", "forget", str(listed[0]["id"]), "--file", str(file)).exit_code == 0
    assert _run("feedback", "list", "--json", "--file", str(file)).stdout.strip() == "[]"
    assert isinstance(_run("feedback", "helped", "no#1", "--file", str(file), *where).exception, IndexMissing)


def test_misses_are_kept_only_where_that_is_switched_on(index: Path, tmp_path: Path) -> None:
    kept = tmp_path / "home" / ".local" / "share" / "kb-issues" / "feedback.sqlite"
    question = UNKNOWN.format(n=1)
    assert _run("search", "--index", str(index), question).exit_code == 1
    assert not kept.exists()
    own = tmp_path / "home" / ".config" / "kb-issues" / "kb.toml"
    own.parent.mkdir(parents=True)
    own.write_text("[feedback]\nmisses = true\n")
    assert _run("search", "--index", str(index), "--no-feedback", question).exit_code == 1
    assert not kept.exists()
    assert _run("search", "--index", str(index), question, KB_FEEDBACK="off").exit_code == 1
    assert not kept.exists()
    assert _run("search", "--index", str(index), question).exit_code == 1
    assert _run("search", "--index", str(index), QUESTION).exit_code == 0
    shown = json.loads(_run("gaps", "--json", "--index", str(index)).stdout)
    assert [one["count"] for one in shown] == [1]
    for path in kept.parent.glob("feedback.sqlite*"):
        path.write_bytes(b"damaged" * 1000)
    ran = _run("search", "--index", str(index), question)
    assert ran.exit_code == 1 and "Not known" in ran.stdout and "votes and misses cannot be used" in ran.stderr


@pytest.mark.thorough
def test_a_command_that_fails_unknown_is_a_miss(index: Path, file: Path, tmp_path: Path) -> None:
    own = tmp_path / "home" / ".config" / "kb-issues" / "kb.toml"
    own.parent.mkdir(parents=True)
    own.write_text(f"[feedback]\nmisses = true\nfile = {json.dumps(str(file))}\n")
    code = "raise RuntimeError('flux capacitor desynchronised after 12 s')"
    ran = subprocess.run(
        [sys.executable, "-m", "kb", "run", "--index", str(index), "--", sys.executable, "-c", code],
        capture_output=True,
    )
    assert ran.returncode == 1
    assert [miss.lines[0] for miss in Feedback(file).misses()] == [
        "RuntimeError: flux capacitor desynchronised after <n> s"
    ]


@pytest.mark.thorough
def test_without_a_file_a_search_loads_nothing_of_it(index: Path) -> None:
    code = (
        "import sys\nsys.argv = ['kb', 'search', 'pop from an empty deque']\nfrom kb.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n"
        "    print([name for name in ('sqlite3', 'kb.feedback.store', 'kb.importers.mask') if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "KB_INDEX": str(index)}
    )
    assert ran.stdout.splitlines()[-1] == "[]", ran.stderr


def test_a_folder_cannot_switch_it_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from kb.config import read_settings
    from kb.index.trust import remember

    here = tmp_path / "here"
    (here / "kb.toml").write_text('[feedback]\nmisses = true\nfile = "/tmp/x"\n')
    remember(here, True)
    found = read_settings(here)
    assert not found.misses and found.feedback_file is None
    assert "feedback is not used" in caplog.text


@pytest.fixture
def client(base: KnowledgeBase, heard: Feedback) -> TestClient:
    return TestClient(create_app(base, feedback=heard), base_url=HOME)


def test_a_vote_over_http(client: TestClient, heard: Feedback) -> None:
    assert client.get("/api/feedback").json() == {"on": True}
    body = {"issue": DEQUE, "verdict": "did_not_fit", "question": QUESTION}
    assert client.post("/api/feedback", json=body).json()["did_not_fit"] == 1
    assert client.post("/api/feedback", json={**body, "verdict": "helped"}).json()["helped"] == 1
    assert client.post("/api/feedback", json={**body, "verdict": "none"}).json()["helped"] == 0
    assert heard.votes() == []


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"json": {"issue": DEQUE, "verdict": "great"}}, 400),
        ({"json": {"issue": DEQUE}}, 400),
        ({"json": {"issue": "no-such#1", "verdict": "helped"}}, 404),
        ({"content": f"issue={DEQUE}&verdict=helped", "headers": {"content-type": "text/plain"}}, 415),
        ({"json": {"issue": DEQUE, "verdict": "helped"}, "headers": {"origin": "https://evil.example"}}, 403),
        ({"json": {"issue": DEQUE, "verdict": "helped"}, "headers": {"sec-fetch-site": "cross-site"}}, 403),
    ],
)
def test_what_is_no_vote(client: TestClient, heard: Feedback, sent: dict[str, Any], status: int) -> None:
    assert client.post("/api/feedback", **sent).status_code == status
    assert heard.votes() == []


def test_one_address_is_slowed_down(client: TestClient) -> None:
    body = {"issue": DEQUE, "verdict": "helped"}
    codes = [client.post("/api/feedback", json=body).status_code for _ in range(40)]
    assert codes[:30] == [200] * 30 and codes[-1] == 429


def test_a_server_without_a_file_keeps_nothing(base: KnowledgeBase) -> None:
    client = TestClient(create_app(base), base_url=HOME)
    assert client.get("/api/feedback").json() == {"on": False}
    assert client.post("/api/feedback", json={"issue": DEQUE, "verdict": "helped"}).status_code == 404


def _misses(heard: Feedback, families: int) -> list[tuple[str, int]]:
    for _ in range(200):
        found = [(miss.lines[0], miss.count) for miss in heard.misses()]
        if len(found) == families:
            break
        time.sleep(0.01)
    time.sleep(0.05)
    return sorted((miss.lines[0], miss.count) for miss in heard.misses())


def test_what_is_still_typed_is_not_asked(client: TestClient, heard: Feedback) -> None:
    whole = "ValueError: the teapot has no handle"
    for end in (11, 16, 22, 30, len(whole)):
        client.post("/api/search", json={"query": whole[:end], "draft": True})
    client.post("/api/search", json={"query": whole})
    client.get("/api/search", params={"q": QUESTION})
    assert _misses(heard, 1) == [(whole, 1)]


def test_a_log_in_which_nothing_is_found(client: TestClient, heard: Feedback) -> None:
    log = "step 1 loss 0.4\n" * 30_000 + "[rank7]: " + UNKNOWN.format(n=7) + "\n" + "step 2 loss 0.3\n" * 30
    assert client.post("/api/scan", content=log, headers={"content-type": "text/plain"}).json()["verdict"] == "unknown"
    client.post("/api/scan", content="step 1 loss 0.4\n" * 300, headers={"content-type": "text/plain"})
    assert _misses(heard, 1) == [("RuntimeError: flux capacitor desynchronised after <n> s on <host>", 1)]


@pytest.mark.skipif(find_spec("uvicorn") is None, reason="needs the extra `serve`")
def test_a_server_with_a_file_that_is_none(index: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad"
    bad.write_bytes(b"x" * 5000)
    ran = CliRunner().invoke(cli, ["serve", "--port", "0", "--index", str(index), "--feedback", str(bad)])
    assert isinstance(ran.exception, FeedbackError)
