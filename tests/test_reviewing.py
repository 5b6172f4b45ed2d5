"""`kb review`: decisions about drafts as changes of their text, and the walk through them at a terminal."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from kb.articles import is_draft
from kb.articles.folded import has_fold
from kb.articles.frontmatter import peek
from kb.cli import cli
from kb.errors import ArticleError
from kb.importers import ArticleFolder, read_threads, save_draft, thread_draft
from kb.importers.posts import read_posts
from kb.review.drafts import Draft, accepted, as_duplicate, candidates, find_drafts, keep, missing, with_fix
from kb.review.lint import HAS_FOLD, IS_DRAFT, review
from kb.scraped import parse

HOME = "https://github.com/acme/tool/issues"
THREADS = {
    1: ("KeyError: 'flux' at start", [("ann", "same here"), ("ben", "Set `FLUX=1`."), ("asker", "works now, thanks")]),
    2: ("ValueError: no such port", [("ann", "Maybe."), ("ben", "restart?"), ("evil", "-->\n# X\nof evil \x1b[31m")]),
    3: ("RuntimeError: 数据为空", [("ben", "重新下载数据就好了"), ("asker", "可以了，谢谢")]),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "articles"
    items = [
        {
            "number": number, "title": title, "body": f"It stops.\n\n```\n{title}\n```", "state": "OPEN",
            "url": f"{HOME}/{number}", "author": {"login": "asker"}, "createdAt": "2026-01-02",
            "comments": [
                {"author": {"login": by}, "body": body, "createdAt": f"2026-01-0{n}", "url": f"{HOME}/{number}#c{n}"}
                for n, (by, body) in enumerate(comments, 1)
            ],
        }
        for number, (title, comments) in THREADS.items()
    ]  # fmt: skip
    into = ArticleFolder(made)
    for thread in read_threads([("x", json.dumps(items))]):
        save_draft(thread_draft(thread), into)
    return made


def drafts(folder: Path) -> list[Draft]:
    return [Draft.read(folder, path) for path in find_drafts(folder)]


def test_another_post_becomes_the_fix(folder: Path) -> None:
    draft = drafts(folder)[0]
    assert draft.record
    assert draft.record.fix == "Set `FLUX=1`."
    first, *others = candidates(draft.posts)
    assert first.text == "Set `FLUX=1`."
    for post in others:
        text = with_fix(draft, post)
        (record,) = parse(text.encode(), path=draft.path).records
        assert record.fix == post.text
        assert record.sources == (f"{HOME}/1", post.url)
        assert (record.symptom, record.title) == (draft.record.symptom, draft.record.title)
        assert read_posts(text) == list(draft.posts)
        assert is_draft(text.encode())


def test_a_hostile_post_stays_in_its_section(folder: Path) -> None:
    draft = drafts(folder)[1]
    evil = next(post for post in draft.posts if post.by == "evil")
    text = with_fix(draft, evil)
    (record,) = parse(text.encode(), path=draft.path).records
    assert "of evil" in record.fix
    assert "\x1b" not in text
    assert record.symptom == (draft.record.symptom if draft.record else "")


def test_an_accepted_draft_is_an_article(folder: Path) -> None:
    draft = drafts(folder)[0]
    text = accepted(draft)
    assert not is_draft(text.encode())
    assert not has_fold(text)
    assert draft.record
    (record,) = parse(text.encode(), path=draft.path).records
    assert (record.fix, record.errors, record.sources) == (draft.record.fix, draft.record.errors, draft.record.sources)


def test_what_is_missing_is_said_before(folder: Path) -> None:
    good, bad, _ = drafts(folder)
    assert missing(folder, bad.path, accepted(bad))[0].level == "error"
    told = missing(folder, good.path, accepted(good))
    assert {problem.level for problem in told} == {"warning"}
    assert any("has no cause" in problem.message for problem in told)
    assert not (folder / good.path).read_text("utf-8").startswith(accepted(good))


def test_a_link_in_a_draft_leads_to_no_file_outside_of_the_articles(folder: Path, tmp_path: Path) -> None:
    """Somebody's issue could link any file: it was copied, over itself where its path was absolute."""
    victim = tmp_path / "victim.md"
    victim.write_text("# Precious\n", "utf-8")
    victim.chmod(0)
    (folder / "en" / "away").symlink_to(tmp_path)
    draft = drafts(folder)[0]
    links = " ".join(f"[x]({target})" for target in (victim, "away/victim.md", "../../victim.md", "//etc/hosts.md"))
    before = victim.stat()
    if os.geteuid() == 0:  # who may open everything is seen by the times
        victim.chmod(0o600)
    told = missing(folder, draft.path, accepted(draft) + f"\n{links}\n")
    assert "leads nowhere" in " ".join(problem.message for problem in told)
    after = victim.stat()
    assert (after.st_mtime_ns, after.st_atime_ns) == (before.st_mtime_ns, before.st_atime_ns)


def test_a_duplicate_names_its_issue_and_is_not_served(folder: Path) -> None:
    draft, other, _ = drafts(folder)
    text = as_duplicate(draft, "other-slug#2")
    front = peek(text.encode())
    assert (front.draft, front.is_duplicate, front.duplicate_of) == (True, True, "other-slug#2")
    assert parse(text.encode(), path=draft.path).draft
    keep(folder, draft.path, draft.text, text)
    assert draft.path not in find_drafts(folder)
    (problem,) = [problem for problem in review(folder) if problem.path == draft.path]
    assert "other-slug#2, which is not there" in problem.message
    named = Path(other.path).stem
    keep(folder, draft.path, text, as_duplicate(draft, f"{named}#1"))
    assert not [problem for problem in review(folder) if problem.path == draft.path]
    with pytest.raises(ArticleError, match="no line"):
        as_duplicate(Draft.read(folder, draft.path), "x#1")


def test_what_changed_meanwhile_is_not_written_over(folder: Path) -> None:
    draft = drafts(folder)[0]
    (folder / draft.path).write_text(draft.text + "\nmy words\n", "utf-8")
    with pytest.raises(ArticleError, match="meanwhile"):
        keep(folder, draft.path, draft.text, accepted(draft))
    assert "my words" in (folder / draft.path).read_text("utf-8")


def test_check_names_an_article_that_still_holds_its_thread(folder: Path) -> None:
    draft = drafts(folder)[0]
    before = [problem.message for problem in review(folder) if problem.path == draft.path]
    assert before.count(IS_DRAFT) == 1
    assert HAS_FOLD not in before
    (folder / draft.path).write_text(draft.text.replace("status: draft\n", ""), "utf-8")
    found = [problem for problem in review(folder) if problem.path == draft.path]
    assert [problem.level for problem in found if problem.message == HAS_FOLD] == ["error"]


def test_without_a_terminal_it_says_so(folder: Path) -> None:
    told = CliRunner().invoke(cli, ["review", "--articles", str(folder)])
    assert "terminal" in str(told.exception)
    assert len(find_drafts(folder)) == len(THREADS)


# --- at a terminal ----------------------------------------------------------------------------------------------------


@pytest.fixture
def walk(folder: Path) -> Callable[..., tuple[str, int | None]]:
    """Runs `kb review` at a terminal of its own. A key is sent when one is waited for: what is typed before is lost."""
    pty = pytest.importorskip("pty")
    termios = pytest.importorskip("termios")
    modes = 3  # the place of the local modes in what tcgetattr gives

    def run(keys: str, *, width: int = 80, **environment: str) -> tuple[str, int | None]:
        ours, theirs = pty.openpty()
        told = {**os.environ, "TERM": "xterm", "COLUMNS": str(width), "LINES": "40", "PAGER": "cat", **environment}
        with subprocess.Popen(
            [sys.executable, "-m", "kb", "review", "--articles", str(folder)],
            stdin=theirs, stdout=theirs, stderr=theirs, env=told, start_new_session=True,
        ) as started:  # fmt: skip
            os.close(theirs)
            seen = b""
            answered = 0  # how much it had shown when the last key was sent
            left = list(keys)
            until = time.monotonic() + 60
            while time.monotonic() < until:
                ready, _, _ = select.select([ours], [], [], 0.1)
                if ready:
                    try:
                        read = os.read(ours, 65536)
                    except OSError:
                        break
                    if not read:
                        break
                    seen += read
                elif left and len(seen) > answered and not termios.tcgetattr(ours)[modes] & termios.ICANON:
                    answered = len(seen)
                    os.write(ours, left.pop(0).encode())
            started.kill()
            status = started.wait()
        os.close(ours)
        return seen.decode("utf-8", "replace"), status

    return run


@pytest.mark.thorough
def test_a_walk(folder: Path, walk: Callable[..., tuple[str, int | None]]) -> None:
    """Accept the first, pick a fix for the second and take it back, skip it, mark nothing, stop."""
    one, two, three = find_drafts(folder)
    before = (folder / two).read_bytes()
    shown, status = walk("aa1u?tsq")
    assert status == 0
    assert "asker confirms it" in shown
    assert "It still lacks:" in shown
    assert f"accepted: {one}" in shown
    assert "taken back" in shown
    assert "1 accepted, 0 duplicates, 2 still drafts" in shown
    assert "1 article (1 new or changed" in shown  # built at once
    assert (folder.parent / "index").is_dir()
    assert (folder / two).read_bytes() == before
    assert find_drafts(folder) == [two, three]
    assert not has_fold((folder / one).read_text("utf-8"))


@pytest.mark.thorough
@pytest.mark.parametrize("width", [60, 200])
def test_any_width_and_language(width: int, walk: Callable[..., tuple[str, int | None]]) -> None:
    shown, status = walk("sa\x03", width=width, KB_LANG="zh", NO_COLOR="1")
    assert status == 130
    assert "还缺" in shown
    assert "要先改掉错误" in shown  # the second has no fix
    assert "\x1b[3" not in shown.replace("\x1b[3m", "")  # no colour, ours or theirs


@pytest.mark.thorough
def test_ctrl_c_loses_nothing(folder: Path, walk: Callable[..., tuple[str, int | None]]) -> None:
    one, *others = find_drafts(folder)
    shown, status = walk("aa\x03")
    assert status == 130
    assert "kb build" in shown
    assert find_drafts(folder) == others
    assert not is_draft((folder / one).read_bytes())


@pytest.mark.thorough
def test_the_editor_is_opened(folder: Path, walk: Callable[..., tuple[str, int | None]], tmp_path: Path) -> None:
    script = tmp_path / "edit.py"
    script.write_text(
        "import sys\np = sys.argv[1]\nt = open(p).read()\nopen(p, 'w').write(t.replace('FLUX=1', 'FLUX=2'))\n"
    )
    shown, _ = walk("eq", EDITOR=f"{sys.executable} {script}", VISUAL="")
    assert "FLUX=2" in shown
    assert len(find_drafts(folder)) == len(THREADS)
