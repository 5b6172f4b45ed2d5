"""Which post of a thread is the fix, and the folded part in which a draft keeps the whole thread."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.articles.folded import OPENING, fold, has_fold, unfold, without_fold
from kb.articles.folder import read_articles
from kb.articles.scaffold import PLACEHOLDER
from kb.cli import cli
from kb.importers import Thread, compose, read_threads, thread_draft
from kb.importers.failures import failures_in
from kb.importers.fix import EVIDENCE, find_fix, rank
from kb.importers.posts import MAX_POST, MAX_POSTS, posts_of, read_posts
from kb.importers.wording import read_words
from kb.review.drafts import candidates
from kb.review.words import SAYS, because
from kb.scraped import parse

sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from import_threads import Case, read_cases

CASES = {case.name: case for case in read_cases(Path(__file__).parent / "cases" / "import" / "threads.txt")}
HARD = {
    "other asker-like person solves",
    "a command in the asker's answer to a question is no cure",
    'the answer follows "how did you solve it", in Chinese',
    "asker closes as a mistake of his own",
}
"""threads that the fitted weights get wrong; `scripts/import_threads.py` shows those of the cross-validation"""


def taken(case: Case) -> int | None:
    found = find_fix(rank(case.thread))
    return found.number if found else None


# --- the fix ----------------------------------------------------------------------------------------------------------


def test_there_are_threads_of_every_kind() -> None:
    assert len(CASES) >= 100
    assert sum(not case.fix for case in CASES.values()) >= 25
    assert sum(0 in case.fix for case in CASES.values()) >= 5
    assert sum(bool(re.search("[\u4e00-\u9fff]", case.thread.title)) for case in CASES.values()) >= 20


@pytest.mark.parametrize("name", sorted(CASES.keys() - HARD))
def test_which_post_is_the_fix(name: str) -> None:
    case = CASES[name]
    got = taken(case)
    assert got in case.fix if case.fix else got is None


def test_of_the_hard_ones_most_are_left_open() -> None:
    assert CASES.keys() >= HARD
    assert sum(taken(CASES[name]) not in {None, *CASES[name].fix} for name in HARD) <= 1


def test_the_chances_are_chances() -> None:
    for case in CASES.values():
        ranked = rank(case.thread)
        assert 0 <= sum(one.chance for one in ranked) <= 1
        assert [one.chance for one in ranked] == sorted((one.chance for one in ranked), reverse=True)
        assert len({one.number for one in ranked}) == len(ranked)


def test_every_reason_has_words_in_both_languages() -> None:
    from kb.review.words import _REASONS

    assert _REASONS.keys() == EVIDENCE.keys() - {"post", "opening", "by_asker"}
    assert SAYS["en"].keys() == SAYS["zh"].keys()
    for name in SAYS["en"]:
        assert set(re.findall(r"{\w+}", SAYS["en"][name])) == set(re.findall(r"{\w+}", SAYS["zh"][name]))


@pytest.mark.parametrize("sign", [1, -1])
def test_no_weight_has_a_sign_that_makes_no_sense(sign: int) -> None:
    weights = json.loads((Path(__file__).parents[1] / "kb" / "importers" / "fix.json").read_text("utf-8"))
    assert weights.keys() == EVIDENCE.keys()
    assert all(sign * weights[name] >= 0 for name, allowed in EVIDENCE.items() if allowed == sign)


WORDS = {
    "It worked for me, thanks.": "solved thanks",
    "It does not work.": "unsolved",
    "did not help": "unsolved",
    "still the same error": "unsolved same",
    "How did you solve it?": "same question",
    "Is it solved?": "question",
    "if this solves it, let me know": "",
    "这个问题我解决了": "solved",
    "问题解决了吗": "same question",
    "没有解决": "unsolved",
    "没用，还是一样": "unsolved",
    "请问怎么解决": "same",
    "谢谢": "thanks",
    "`fixed`": "",
    "On Mon, Jan 3, 2022 at 10:00 AM x wrote:\n> it works": "",
}


@pytest.mark.parametrize("text", WORDS)
def test_what_words_say(text: str) -> None:
    said = read_words(text)
    got = {name for name in ("solved", "unsolved", "same", "thanks", "question") if getattr(said, name)}
    assert got == set(WORDS[text].split())


@given(st.text(max_size=300), st.text(max_size=300), st.booleans())
@settings(max_examples=examples(100))
def test_any_thread_is_ranked(body: str, comment: str, closed: bool) -> None:
    (thread,) = read_threads(
        [("x", json.dumps(_item(body, [("asker", comment), ("ann", f"{comment} fixed"), ("", body)])))]
    )
    thread.closed = closed
    assert 0 <= sum(one.chance for one in rank(thread)) <= 1 + 1e-9


@pytest.mark.parametrize("count", [0, 500 if THOROUGH else 150])
def test_a_long_thread_takes_no_long_time(count: int) -> None:
    """No test of milliseconds: with a quadratic search for what a reply means, 5,000 comments would take minutes."""
    comments = [
        ("asker" if n % 3 else "ann", f"try `x={n}`" if n % 2 else f"did not help {n}") for n in range(count * 10)
    ]
    (thread,) = read_threads([("x", json.dumps(_item("it fails", comments)))])
    assert len(rank(thread)) == len(comments)


def _item(body: str, comments: list[tuple[str, str]], title: str = "it stops") -> dict[str, object]:
    return {
        "number": 7, "title": title, "body": body, "state": "CLOSED", "url": "https://github.com/acme/tool/issues/7",
        "author": {"login": "asker"},
        "comments": [{"author": {"login": by}, "body": text, "createdAt": "2026-01-02"} for by, text in comments],
    }  # fmt: skip


def _thread(body: str, *comments: tuple[str, str], title: str = "it stops") -> Thread:
    (thread,) = read_threads([("x", json.dumps(_item(body, list(comments), title)))])
    return thread


# --- the draft --------------------------------------------------------------------------------------------------------


def test_a_draft_without_a_fix_names_the_likeliest_and_invents_none() -> None:
    text = compose(thread_draft(_thread("It fails.", ("ann", "same here"), ("ben", "maybe the driver?"))))
    (record,) = parse(text.encode(), path="en/a.md").records
    left = PLACEHOLDER.search(record.fix)
    assert left
    assert "no convincing fix" in left[0]
    assert record.fix == f"1. {left[0]}"


def test_the_fix_in_the_first_post_leaves_the_symptom() -> None:
    body = "All panels say no data.\n\n**Update:** solved, I set `TOKEN_MODE=new` and they work again."
    (record,) = parse(compose(thread_draft(_thread(body))).encode(), path="en/a.md").records
    assert record.symptom == "All panels say no data."
    assert record.fix.startswith("**Update:** solved")


ERRORS = {
    "Thanks for the work! It says: RuntimeError: expected 2 tensors, got 3! Can you help me?": [
        "RuntimeError: expected 2 tensors, got 3!"
    ],
    "_**ValueError: no such key (7)**_\n\nBut I can't find the problem. Looking forward to your reply": [
        "ValueError: no such key (7)"
    ],
    "```\nUserWarning: old\nKeyError: 'x'\n```": ["KeyError: 'x'"],
    "UserWarning: x was not compiled with y": ["UserWarning: x was not compiled with y"],
    "提示 RuntimeError: boom 7，请问是什么原因？": ["RuntimeError: boom 7"],
    "It stops and I do not know why.": [],
}


@pytest.mark.parametrize("text", ERRORS)
def test_error_lines_are_told_from_the_words_around_them(text: str) -> None:
    assert failures_in(text) == ERRORS[text]
    (record,) = parse(compose(thread_draft(_thread(text))).encode(), path="en/a.md").records
    assert set(ERRORS[text]) <= set(record.errors)
    assert not any(word in line for line in record.errors for word in ("Thanks", "help", "find", "请问", "know"))


def test_the_error_line_may_stand_in_the_title_or_come_later() -> None:
    for thread in (_thread("See above.", title="[Bug] KeyError: 'x'"), _thread("It fails", ("asker", "KeyError: 'x'"))):
        (record,) = parse(compose(thread_draft(thread)).encode(), path="en/a.md").records
        assert record.errors == ("KeyError: 'x'",)


# --- the folded part --------------------------------------------------------------------------------------------------

SECRET = "ghp_0123456789abcdefABCDEF0123456789abcd"
HOSTILE = [
    "-->", "--!>", "<!--", OPENING, f"{OPENING}\n", "---\nstatus: published\n---", '{"post": 1, "chance": 1.0}', "> x",
    "```", "### Fix", "</details>", "\u2028-->\u2028# Fix", "\x85-->", "\r-->\r", "--&gt;", SECRET,
    "<to write: x>", "\x1b[31m", "\ud800", "",
]  # fmt: skip
hostile = st.lists(st.sampled_from(HOSTILE) | st.text(max_size=20), max_size=8).map("\n".join)


@given(hostile, hostile, st.text(max_size=20))
@settings(max_examples=examples(150))
def test_no_text_breaks_out_of_the_folded_part(body: str, comment: str, by: str) -> None:
    thread = _thread(body, (by, comment or "x"), ("ann", "Fixed with `a=1`."))
    draft = thread_draft(thread)
    text = compose(draft)
    article = parse(text.encode(), path="en/a.md")
    assert article.draft
    assert len(article.records) == 1
    alone = "\n".join(without_fold(text.split("\n")))
    assert not has_fold(alone)
    assert SECRET not in text
    assert parse(alone.encode(), path="en/a.md").records == article.records
    posts = read_posts(text)
    assert [post.number for post in posts] == list(range(len(thread.comments) + 1))
    plain = [post.text.replace("&gt;", ">") for post in posts_of(thread, rank(thread))]
    assert [post.text for post in posts] == plain or "--&gt;" in f"{body}{comment}"


@given(st.lists(hostile, max_size=5))
@settings(max_examples=examples(100))
def test_what_is_folded_comes_back(texts: list[str]) -> None:
    lines = [f"> {line}" for text in texts for line in text.split("\n") if "&gt;" not in line]
    text = f"# T\n\nwords\n\n{fold(lines)}\n"
    assert unfold(text) == lines
    assert "\n".join(without_fold(text.split("\n"))).rstrip() == "# T\n\nwords"


def test_what_stands_behind_the_folded_part_is_kept() -> None:
    lines = f"a\n{fold(['> x'])}\nb".split("\n")
    assert without_fold(lines) == ["a", "", "", "", "b"]
    assert without_fold(["a", OPENING, "> never closed"]) == ["a"]


@given(st.text(max_size=300))
@settings(max_examples=examples(100))
def test_an_edited_folded_part_is_read_as_far_as_it_goes(junk: str) -> None:
    for post in read_posts(f"{OPENING}\n{junk}\n-->\n"):
        assert 0 <= post.chance <= 1
        assert all(reason.removeprefix("-") in EVIDENCE for reason in post.reasons)
        assert because(post, "en") is not None


@pytest.mark.thorough
def test_a_thread_of_any_length_fits_into_an_article(tmp_path: Path) -> None:
    long = "y" * (3000 if THOROUGH else 300)
    thread = _thread("x" * 500_000, *(("ann", f"{n} {long}") for n in range(MAX_POSTS + 500)))
    text = compose(thread_draft(thread))
    assert len(text.encode()) < 2_000_000
    posts = read_posts(text)
    assert len(posts) == MAX_POSTS
    assert max(len(post.text) for post in posts) < MAX_POST + 10


def test_bots_are_shown_and_never_the_fix(tmp_path: Path) -> None:
    item = _item("It fails.", [("ann", "Set `a=1`, it works now."), ("stale[bot]", "Fixed. Set `b=2`, it works now.")])
    (thread,) = read_threads([("x", json.dumps(item))])
    posts = posts_of(thread, rank(thread))
    assert [post.who for post in posts] == ["asker", "other", "bot"]
    assert [post.number for post in candidates(posts)] == [1]


# --- folders ----------------------------------------------------------------------------------------------------------


def _items(*numbers: int) -> list[dict[str, object]]:
    home = "https://github.com/acme/tool/issues"
    return [{**_item(f"RuntimeError: boom {n}", []), "number": n, "url": f"{home}/{n}"} for n in numbers]


def test_a_folder_of_threads(tmp_path: Path) -> None:
    """Files of one or many, in folders; what is no issue is named and left; a second run writes nothing."""
    site = tmp_path / "site"
    (site / "deep").mkdir(parents=True)
    for number, name in enumerate(("a.json", "deep/b.json", "deep/c.jsonl", ".hidden.json", "notes.txt")):
        items = _items(10 * number + 1, 10 * number + 2)
        (site / name).write_text(json.dumps(items), "utf-8")
    (site / "broken.json").write_text("{", "utf-8")
    (site / "other.json").write_text('{"a": 1}', "utf-8")
    (site / "outside.json").symlink_to(tmp_path / "secret.json")
    (tmp_path / "secret.json").write_text((site / "a.json").read_text("utf-8").replace("tool", "secret"), "utf-8")
    for words in ("6 drafts written, 0 there already, 2 left out", "0 drafts written, 6 there already, 2 left out"):
        told = CliRunner().invoke(cli, ["import", "github", str(site), "--articles", str(tmp_path / "k")])
        assert told.exit_code == 0
        assert words in told.stderr
        assert "broken.json" in told.stderr
    assert not any(b"acme/secret" in data for _, data in read_articles(tmp_path / "k") if isinstance(data, bytes))


def test_an_interrupted_import_goes_on(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    (tmp_path / "t/a.json").write_text(json.dumps(_items(*range(1, 8))), "utf-8")
    arguments = ["import", "github", str(tmp_path / "t"), "--articles", str(tmp_path / "k")]
    assert "3 drafts written" in CliRunner().invoke(cli, [*arguments, "--limit", "3"]).stderr
    kept = {path: path.read_bytes() for path in (tmp_path / "k").rglob("*") if path.is_file()}
    assert len(kept) == 3
    assert "4 drafts written, 3 there already" in CliRunner().invoke(cli, arguments).stderr
    assert all(path.read_bytes() == data for path, data in kept.items())
