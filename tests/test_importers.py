"""kb import: what comes out is an article in our own form that says what its source says, and never anything worse."""

from __future__ import annotations

import json
import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from conftest import THOROUGH, examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kb.articles.folder import read_articles
from kb.articles.scaffold import PLACEHOLDER, is_slug
from kb.cli import cli
from kb.errors import ArticleError, ExtraMissing
from kb.importers import (
    ArticleFolder,
    DraftArticle,
    DraftIssue,
    compose,
    page_draft,
    read_threads,
    save_draft,
    thread_draft,
)
from kb.importers.body import read_body
from kb.importers.fix import find_fix, rank
from kb.importers.form import contained, one_line, slug_from
from kb.importers.github import Comment, Thread
from kb.importers.mask import mask_secrets, tidy
from kb.importers.web import read_html
from kb.records import Article, IssueRecord
from kb.review.lint import IS_DRAFT, review
from kb.scraped import parse

CASES = Path(__file__).parent / "cases" / "import"


def run(*arguments: object, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli, ["import", *map(str, arguments)], input=given)


def read(folder: Path) -> dict[str, Article]:
    """By slug."""
    return {Path(path).stem: parse(data, path=path) for path, data in read_articles(folder) if isinstance(data, bytes)}


def only(folder: Path) -> IssueRecord:
    (article,) = read(folder).values()
    (record,) = article.records
    return record


# --- gh ---------------------------------------------------------------------------------------------------------------


def test_what_gh_prints(tmp_path: Path) -> None:
    told = run("github", CASES / "gh.json", "--articles", tmp_path)
    assert told.exit_code == 0
    assert "2 drafts written, 0 there already, 2 left out" in told.stderr  # a bot's and a pull request
    articles = read(tmp_path)
    one = articles["trainkit-812-resume-from-checkpoint-fails-with-keyerror-optimizer-state"]
    (record,) = one.records
    assert one.draft
    assert (record.lang, record.project, record.tags) == ("en", "trainkit", ("bug", "checkpoint"))
    assert record.title == "Resume from checkpoint fails with KeyError: 'optimizer_state' since 2.4"
    assert record.versions == ("transformers 4.57.1", "PyTorch 2.9.0+cu128")
    assert record.sources == (
        "https://github.com/acme/trainkit/issues/812",
        "https://github.com/acme/trainkit/issues/812#issuecomment-2",
    )
    assert "KeyError: 'optimizer_state'" in record.errors
    assert record.symptom.startswith("After the update from 2.3.1")
    assert "#### my config" in record.symptom
    assert "#### Reproduction" in record.symptom or "###### Reproduction" in record.symptom
    for left in (
        "Thank you",
        "Checklist",
        "[x]",
        "No response",
        "Expected",
        "System Info",
        "Describe the bug",
        "hf_Ab",
    ):
        assert left not in record.symptom
    assert record.cause == ""
    assert record.fix.startswith("The key was renamed")
    assert "trainkit convert-ckpt --to 2.4 last.pt  # [masked]" in record.fix
    assert record.fix.endswith("upgrade to 2.4.1, which reads both (#815).")


def test_a_thread_without_a_fix_says_so(tmp_path: Path) -> None:
    run("github", CASES / "gh.json", "--articles", tmp_path)
    (record,) = read(tmp_path)["trainkit-820-init-process-group"].records
    assert record.lang == "zh"
    assert record.errors == ("RuntimeError: Timed out initializing process group in store based barrier on rank: 8",)
    assert PLACEHOLDER.search(record.fix)
    assert "# 第二台\ntorchrun --nnodes 2" in record.symptom  # the fence is closed, the comment is no heading
    assert "details>" not in record.symptom


def test_what_the_rest_api_gives(tmp_path: Path) -> None:
    """Issues and comments apart, after one another, in pages, beside each other: the same drafts."""
    issues, comments = (json.loads((CASES / f"rest_{name}.json").read_text("utf-8")) for name in ("issues", "comments"))
    texts = {
        "two files": [json.dumps(issues), json.dumps(comments)],
        "one after the other": [json.dumps(issues) + json.dumps(comments)],
        "lines": ["\n".join(map(json.dumps, [*comments, *issues]))],
        "slurped pages": [json.dumps([[issues[0]], issues[1:], comments])],
        "a search": [json.dumps({"total_count": 3, "items": issues}), json.dumps(comments)],
        "beside": [json.dumps({"issue": issues[0], "comments": comments}), json.dumps(issues)],
        "inside": [json.dumps({**issues[0], "comments": comments}), json.dumps(issues[2])],
        "with a mark": ["\ufeff" + json.dumps(issues), json.dumps(comments)],
    }
    drafts = {}
    for name, parts in texts.items():
        threads = [thread for thread in read_threads((name, part) for part in parts) if not thread.pull]
        drafts[name] = [compose(thread_draft(thread)) for thread in threads]
    assert all(draft == drafts["two files"] for draft in drafts.values()), drafts.keys()
    (tmp_path / "comments.json").write_text(json.dumps(comments), "utf-8")
    run("github", CASES / "rest_issues.json", tmp_path / "comments.json", "--articles", tmp_path / "a")
    found = {record.title: record for article in read(tmp_path / "a").values() for record in article.records}
    assert len(found) == 2
    assert PLACEHOLDER.search(found["Crash on startup"].symptom)  # its body is null, its author gone
    record = found['Server exits with "ValueError: max_model_len (131072) exceeds the KV cache" on 24 GB']
    assert record.fix.startswith("I solved it with `--max-model-len 32768`")  # nobody's member, but most liked
    assert any(
        line.startswith("ValueError: max_model_len (131072) exceeds the KV cache, which") for line in record.errors
    )
    assert record.tags == ("oom",)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ([], 2),
        (["--closed-only"], 1),
        (["--label", "BUG"], 1),
        (["--label", "nothing", "--label", "checkpoint"], 1),
        (["--label", "nothing"], 0),
        (["--limit", "1"], 1),
        (["--dry-run"], 0),
        (["--project", "Train Kit"], 2),
    ],
)
def test_options(options: list[str], count: int, tmp_path: Path) -> None:
    told = run("github", CASES / "gh.json", "--articles", tmp_path, *options)
    assert told.exit_code == 0
    assert len(read(tmp_path)) == count
    if "--dry-run" in options:
        assert len(told.stdout.splitlines()) == 2
        assert not list(tmp_path.rglob("*.md"))
    if "--project" in options:
        assert {record.project for article in read(tmp_path).values() for record in article.records} == {"Train Kit"}


def test_nothing_is_overwritten_and_nothing_told_twice(tmp_path: Path) -> None:
    assert run("github", "-", "--articles", tmp_path, given=(CASES / "gh.json").read_bytes()).exit_code == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.md")}
    again = run("github", CASES / "gh.json", "--articles", tmp_path)
    assert "0 drafts written, 2 there already" in again.stderr
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.md")} == before
    for path in before:  # reviewed, and given a better name
        path.rename(path.with_name(f"better-{path.name[:20]}.md"))
    again = run("github", CASES / "gh.json", "--articles", tmp_path)
    assert "0 drafts written, 2 there already" in again.stderr


def test_an_article_that_only_mentions_a_thread_does_not_tell_it(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    text = "---\nsources: [{}]\n---\n\n# A\n\nsee https://github.com/acme/trainkit/issues/820\n"
    (tmp_path / "en/a.md").write_text(text.format("https://github.com/acme/trainkit/issues/812/"), "utf-8")
    told = run("github", CASES / "gh.json", "--articles", tmp_path)
    assert "kb: en/a.md has it already" in told.stderr
    assert "1 draft written, 1 there already" in told.stderr


def test_drafts_wait_for_their_review(tmp_path: Path) -> None:
    run("github", CASES / "gh.json", "--articles", tmp_path)
    found = review(tmp_path)
    assert sum(finding.message == IS_DRAFT for finding in found) == 2
    assert {finding.level for finding in found} == {"warning"}


@pytest.mark.parametrize(
    "text",
    [
        "{", "[" * 5000, '{"a": 1}', '"words"', "3", '[{"title": 3}]', "\x00", "nonsense", '{"title": "x"} }',
        '[{"number": 1, "title": " "}]', "9" * 5000,
    ],
)  # fmt: skip
def test_what_is_no_issue_is_refused(text: str, tmp_path: Path) -> None:
    told = run("github", "-", "--articles", tmp_path, given=text)
    assert told.exit_code == 1 or told.exit_code == ArticleError.exit_code
    assert isinstance(told.exception, ArticleError)
    assert not list(tmp_path.rglob("*.md"))


@pytest.mark.parametrize("text", ["", "[]", "\n", "[[], []]"])
def test_no_issues_are_no_mistake(text: str, tmp_path: Path) -> None:
    assert "0 drafts" in run("github", "-", "--articles", tmp_path, given=text).stderr


def test_issues_without_number_and_address_are_told_apart(tmp_path: Path) -> None:
    told = [("one", "a"), ("two", "a"), ("one", "b"), ("one", "a")]
    text = json.dumps([{"title": title, "body": f"RuntimeError: boom {body}"} for title, body in told])
    assert len(read_threads([("x", text)])) == 3
    numbered = json.dumps([{"number": 7, "title": title, "body": ""} for title in ("one", "two", "one")])
    assert len(read_threads([("x", numbered)])) == 2
    for words in ("3 drafts written", "0 drafts written, 3 there already"):
        assert words in run("github", "-", "--articles", tmp_path, given=text).stderr


def test_issues_without_a_title_are_counted(tmp_path: Path) -> None:
    text = json.dumps([{"number": 1, "title": " ", "body": "b"}, {"number": 2, "title": "t", "body": "b"}])
    told = run("github", "-", "--articles", tmp_path, given=text)
    assert "issue 1 has no title" in told.stderr
    assert "1 draft written, 0 there already, 1 left out" in told.stderr


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                "title body number url html_url state user author login labels name comments reactions "
                "reactionGroups content users totalCount created_at issue items issue_url pull_request "
                "author_association nodes".split()
            ),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(junk)
@settings(max_examples=examples(150))
def test_json_of_any_shape_is_read_or_refused(value: Any) -> None:
    try:
        threads = read_threads([("junk", json.dumps(value))])
    except ArticleError:
        return
    for thread in threads:
        assert parse(compose(thread_draft(thread)).encode(), path="en/a.md").records


# --- which comment is the fix -----------------------------------------------------------------------------------------


def thread(*comments: Comment, closed: bool = True) -> Thread:
    return Thread(1, "t", "b", "asker", "", "", "", (), closed, "", False, False, list(comments))


def comment(body: str, *, by: str = "x", insider: bool = False, likes: int = 0) -> Comment:
    return Comment(body, by, insider, likes, "", "")


def accepted_fix(one: Thread) -> Comment | None:
    found = find_fix(rank(one))
    return one.comments[found.number - 1] if found and found.number else None


FIXES = {
    "a member's": (1, [comment("try `a=1`"), comment("set `b=2`", insider=True), comment("thanks")]),
    "the most liked": (0, [comment("use `a=1` instead", likes=5), comment("try `b=2`"), comment("nice", likes=9)]),
    "the last of a closed one": (1, [comment("maybe try something"), comment("Fixed by #12, closing.")]),
    "the asker's own": (1, [comment("which driver?", insider=True), comment("solved: `pip install x`", by="asker")]),
    "in Chinese": (0, [comment("升级到 `2.1` 就解决了"), comment("同问，怎么解决的")]),
    "none: nobody knows": (None, [comment("same issue", likes=20), comment("any update?"), comment("+1 please fix")]),
    "none: it did not help": (None, [comment("upgrading to 2.1 did not fix it", likes=2)]),
    "none: a question": (None, [comment("Did you set `a=1`?", insider=True)]),
    "none: empty": (None, []),
}  # fmt: skip


@pytest.mark.parametrize("name", FIXES)
def test_which_comment_is_the_fix(name: str) -> None:
    wanted, comments = FIXES[name]
    assert accepted_fix(thread(*comments)) == (None if wanted is None else comments[wanted])


# --- the form holds, whatever the body --------------------------------------------------------------------------------

BREAKERS = [
    "# Fix", "## Other issue", "### 解决方案", "### Fix", "> ## x", "- # x", "1. ### Fix", "```", "````", "~~~",
    "```python",
    "   ```", "- ```", "> ```", "<!--", "-->", "<pre>", "</pre>", "<script>", "<details>", "</details>",
    "<summary>x</summary>",
    "---", "===", "text", "Fix", "| a | b |", "| - | - |", "Project: Evil", "项目：x", "    # code", "\tcode", "* * *",
    "- [ ] x",
    "status: draft", "\\", "&lt;!--", "[x]: http://y", "<div>", "", "", "RuntimeError: boom", "   ", "<to write: x>",
    "#", "##",
    "-" , "- - - # x", "> > > # y", "\u2028# Fix", "a\u2028## Fix", "\x0c## Fix", "\r## Fix", "\x85# Fix", "\ud800",
    "\x1b[31m",
]  # fmt: skip
hostile = st.lists(st.sampled_from(BREAKERS) | st.text(max_size=30), max_size=14).map("\n".join)


def drafted(*issues: DraftIssue) -> DraftArticle:
    return DraftArticle(
        "a-slug", "en", "Title", "Demo", ("t",), ("v 1",), ("https://example.org/1",), "2026-01-31", issues
    )


@pytest.mark.thorough
@given(title=st.text(max_size=60) | st.sampled_from(BREAKERS), bodies=st.tuples(hostile, hostile, hostile))
@example(title="Fix", bodies=("```", "<pre>", "# x"))
@example(title="# #", bodies=("<!-- x", "-->", "> ```\n# Fix"))
@example(title="", bodies=("- a\n\n  ```\n## Fix", "", ""))
@settings(max_examples=examples(160))
def test_any_body_is_one_record_and_the_others_stay(title: str, bodies: tuple[str, str, str]) -> None:
    symptom, cause, fix = bodies
    first = DraftIssue("Before", "It stops.", "", "1. Wait.")
    last = DraftIssue(
        "After", "It stops, too.", "Rust.", "1. Oil it.\n\n```bash\n# twice\noil\n```", ("why does it stop",)
    )
    text = compose(drafted(first, DraftIssue(title, symptom, cause, fix), last))
    article = parse(text.encode(), path="en/a-slug.md")
    assert article.draft
    assert article.title == "Title"
    before, middle, after = article.records
    assert (before.title, before.symptom, before.cause, before.fix) == ("Before", "It stops.", "", "1. Wait.")
    assert (after.symptom, after.cause, after.fix, after.aliases) == (last.symptom, last.cause, last.fix, last.aliases)
    assert {record.project for record in article.records} == {"Demo"}
    assert not [remark for remark in article.remarks if remark.kind == "front-matter"]
    for told, got in ((symptom, middle.symptom), (cause, middle.cause), (fix, middle.fix)):
        if letters := _letters(mask_secrets(tidy(told))):
            assert letters == _letters(got)  # nothing is lost and nothing added but markup
    assert middle.title


def _letters(text: str) -> str:
    """What of it is neither space nor a mark that may be added, moved or taken."""
    return re.sub(r"[\s#`~=>*-]+", "", text)


@given(st.text(max_size=200), st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
@settings(max_examples=examples(120))
def test_any_front_matter_is_read_back(title: str, tag: str, version: str, project: str) -> None:
    draft = DraftArticle(
        "x", "zh", title, project or None, (tag, tag), (version,), (), "", (DraftIssue("T", "s", "", "f"),)
    )
    text = compose(draft)
    (record,) = parse(text.encode(), path="zh/x.md").records
    nothing = ("~", "null", "Null", "NULL")
    assert record.tags == tuple(one for one in [one_line(tag)] if one)
    assert record.versions == tuple(one for one in [one_line(version)] if one)
    assert one_line(project) in nothing or not one_line(project) or record.project == one_line(project)


@given(hostile)
@settings(max_examples=examples(120))
def test_a_thread_of_any_body_is_one_record(body: str) -> None:
    one = thread(comment(f"Fixed: set `a=1`\n{body}", insider=True))
    one.body = body
    draft = thread_draft(one)
    (record,) = parse(compose(draft).encode(), path=f"{draft.lang}/a.md").records
    assert ("a=1" in record.fix) == (accepted_fix(one) is not None)  # the body may turn it into a question
    assert record.symptom


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit",
    [
        "<!--",
        "```\n",
        "# x\n",
        "<details>",
        "> ",
        "- [ ] x\n",
        "![",
        "a b ",
        "`",
        "[",
        "的",
        "<",
        "ghp_",
        "-----BEGIN ",
    ],
)
def test_long_bodies_take_no_long_time(unit: str, size: int = 50_000 if THOROUGH else 10_000) -> None:
    one = thread(comment(unit * (size // len(unit)) + " fixed with `x`", insider=True))
    one.body = unit * (size // len(unit))
    assert len(compose(thread_draft(one))) < 200_000


def test_a_long_log_keeps_its_ends_and_its_errors() -> None:
    log = [f"step {n} of 9000" for n in range(700)]
    log[350] = "ValueError: the loss is gone"
    one = thread()
    one.body = "It stops:\n\n```\n" + "\n".join(log) + "\n```\n"
    (record,) = parse(compose(thread_draft(one)).encode(), path="en/a.md").records
    assert "step 0 of" in record.symptom
    assert "step 699 of" in record.symptom
    assert "lines left out" in record.symptom
    assert "ValueError: the loss is gone" in record.errors


COMMENTS = {
    "a\n<!-- b\n\nc -->\nd": "a\n\nd",
    "a <!-- b --> c <!-- d --> e": "a  c  e",
    "```html\n<!-- b\n```\nc\n\n--> d": "```html\n<!-- b\n```\nc\n\n--> d",
    "```html\n<!-- b -->\n```": "```html\n<!-- b -->\n```",
    "<!-- a\n```\nb\n```\n-->\nc": "c",
    "x\n<!-- never\n```\nerror\n  --> src/main.rs\n```": "x\n&lt;!-- never\n```\nerror\n  --> src/main.rs\n```",
    "put `<!--` there\n\nand then --> that": "put `&lt;!--` there\n\nand then --> that",
}


@pytest.mark.parametrize("text", COMMENTS)
def test_comments_are_removed_outside_of_code(text: str) -> None:
    assert read_body(text).text == COMMENTS[text]


def test_boxes_are_removed_from_the_form_alone() -> None:
    text = "Do:\n- [x] `pip install x`\n- [ ] restart"
    assert read_body(text).text == "Do:"
    assert read_body(text, reply=True).text == text


def test_contained_leaves_ordinary_markdown_as_it_is() -> None:
    text = "Words, `code`.\n\n1. one\n\n   ```bash\n   # comment\n   run\n   ```\n\n- two\n\n| a | b |\n| - | - |"
    assert contained(text) == text


# --- secrets ----------------------------------------------------------------------------------------------------------

SECRETS = [
    "ghp_0123456789abcdefABCDEF0123456789abcd", "github_pat_11ABCDEFG0123456789_abcdefghij",
    "hf_AbCdEfGhIjKlMnOpQrStUv",
    "sk-proj-abcdefghijklmnop1234567890", "sk-abcdefghijklmnopqrstuvwxyz012345", "AKIAIOSFODNN7EXAMPLE",
    "glpat-abcdefghijklmnop1234", "AIza" + "a" * 35, "xoxb-123456789012-abcdefghijkl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
]  # fmt: skip
PLACED = {
    "Authorization: Bearer abcdef0123456789.xyz": "abcdef0123456789",
    "curl -H 'authorization: token 0123456789abcdef'": "0123456789abcdef",
    "https://user:hunter22@example.org/x.git": "hunter22",
    "WANDB_API_KEY=0123456789abcdef0123": "0123456789abcdef0123",
    'api_key: "abcdefghijkl"': "abcdefghijkl",
    "export HF_TOKEN=abcdefgh12345": "abcdefgh12345",
    "DB_PASSWORD = correcthorse": "correcthorse",
    "https://example.org/x?access_token=abcdef0123&n=1": "abcdef0123",
    "https://oapi.dingtalk.com/robot/send?access_token=0a1b2c3d4e5f": "0a1b2c3d4e5f",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXYYYYZZZZ": "XXXXYYYYZZZZ",
    "https://open.feishu.cn/open-apis/bot/v2/hook/0a1b2c3d-4e5f": "0a1b2c3d",
    "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=0a1b2c3d-4e5f": "0a1b2c3d",
    "密码：hunter22": "hunter22",
    "服务器密码是 hunter22，别外传": "hunter22",
    "password: hunter2": "hunter2",
    "token: 0a1b2c3d4e5f": "0a1b2c3d4e5f",
    '{"user": "x", "token": "0a1b2c3d4e5f"}': "0a1b2c3d4e5f",
    "huggingface-cli login --token 0a1b2c3d": "0a1b2c3d",
    "vllm serve m --api-key=letmein": "letmein",
    f"wandb login --relogin {'0a1b2' * 8}": "0a1b2",
    f"wandb.login(key='{'0a1b2' * 8}')": "0a1b2",
    "sshpass -p hunter2 ssh root@host": "hunter2",
    "mysql -u root -phunter2 shop": "hunter2",
    "docker login -u me -p hunter2 registry.x.org": "hunter2",
    "redis-cli -h cache -a hunter2 ping": "hunter2",
    "DB_PASS=hunter2": "hunter2",
    "PASS=hunter2": "hunter2",
    "MYSQL_ROOT_PWD=hunter2": "hunter2",
    "pwd: hunter2": "hunter2",
    "passphrase: hunter2": "hunter2",
    'DB_PASSWORD="correct hunter"': "hunter",
    "AccountKey=0a1b2c3d4e5f6g7h8i9j==": "0a1b2c3d4e5f",
    'docker config: {"auth": "dXNlcjpwYXNz"}': "dXNlcjpwYXNz",
    "sshpass -p 'hunter 2' ssh root@host": "hunter",
    "curl -s -u admin:hunter2 https://x.org": "hunter2",
    "Cookie: sessionid=0a1b2c; csrftoken=3d4e": "3d4e",
    "curl -H 'cookie: sessionid=0a1b2c; x=3d4e' https://x.org": "3d4e",
    "AccessKeyId: LTAI5t0a1b2c3d4e5f": "LTAI5t0a1b2c3d4e5f",
    "AccessKeySecret: 0a1b2c3d4e5f": "0a1b2c3d4e5f",
    "redis://:hunter2@127.0.0.1:6379/0": "hunter2",
    "mysql+pymysql://root:p@ss@db:3306/x": "p@ss",
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,0A1B\n\nMIIEabc\n"
    "-----END RSA PRIVATE KEY-----": "MIIEabc",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: a-b\n\nlQOYabc\n-----END PGP PRIVATE KEY BLOCK-----": "lQOYabc",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc\n-----END RSA PRIVATE KEY-----": "MIIEabc",
    "MIIEowIBAAKCAQEA7vbq0123456789abcdefABCDEFGHIJKLMNOP+/Zq9012345": "0123456789abcdef",
    "Error: password is hunter2trombone": "hunter2",
    "pass: hunter22": "hunter22",
    'passphrase "purple monkey"': "monkey",
    "login with --password 'correct hunter'": "hunter",
    f"wandb api key {'0a1b2' * 8}": "0a1b2",
    "https://x.org/logs?se=2026&sig=0a1b2c3d%3D": "0a1b2c3d",
}


@pytest.mark.parametrize("secret", SECRETS)
def test_tokens_are_masked_wherever_they_stand(secret: str) -> None:
    for text in (f"it is {secret}.", f"`{secret}`", f"x={secret}\n", f'"{secret}"', f"```\n{secret}\n```"):
        assert secret not in mask_secrets(text)
        assert "[masked]" in mask_secrets(text)
    one = thread(comment(f"fixed with `{secret}`", insider=True))
    one.title, one.body, one.labels, one.url = f"t {secret}", secret, (secret,), f"https://x.org/{secret}"
    draft = thread_draft(one)
    assert secret not in compose(draft)
    assert secret.lower().replace("_", "-")[:24] not in draft.slug


@pytest.mark.parametrize("text", PLACED)
def test_secrets_are_masked_in_their_places(text: str) -> None:
    assert PLACED[text] not in mask_secrets(text)


@pytest.mark.parametrize(
    "text",
    ["pad_token: 151643", "token=<your token>", "api_key=$KEY", "tokens per second: 1234567", "the bearer of news",
     "sk-learn", "max_new_tokens=1024", "password: ***", "https://example.org:8080/a@b", "special_tokens_map.json",
     "SyntaxError: Unexpected token: ILLEGAL", '"eos_token": "<|im_end|>"', "--max-tokens 1024 --token $HF_TOKEN",
     "invalid token: unexpected end", "密码：<你的密码>", "密码错误：请重试", "(using password: YES)",
     "the cookie: it is gone", "curl https://x.org:8080/a -o b", "http://localhost:8000/v1 a@b", "--token-budget 4096",
     '"token": "international"', "password: None", "sshpass -p $PASS ssh host",
     "mysql -P 3306 -p", "tests pass: 30 of 31", "bypass=1234", "pwd: /home/me", "PWD=/root/x",
     "docker run -p 8080:80 image login", "password is wrong", "password is not set", "pass: 3 of 4",
     "the api key you passed",
     "--password is required"],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


# --- slugs ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text(max_size=200), max_size=3))
def test_slugs_are_slugs(parts: list[str]) -> None:
    slug = slug_from(*parts)
    assert slug == "" or re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) <= 72


@pytest.mark.parametrize("title", ["多机卡住", "con", "???", "NUL", "报错"])
def test_a_title_without_words_gets_a_slug_that_stays(title: str, tmp_path: Path) -> None:
    draft = DraftArticle(slug_from(title), "zh", title, None, (), (), (), "", (DraftIssue(title, "卡住了", "", ""),))
    one = save_draft(draft, ArticleFolder(tmp_path / "a"))
    two = save_draft(draft, ArticleFolder(tmp_path / "b"))
    assert one == two
    assert is_slug(Path(one.path).stem)
    assert save_draft(draft, ArticleFolder(tmp_path / "a")).already


# --- pages ------------------------------------------------------------------------------------------------------------


def test_pages(tmp_path: Path) -> None:
    told = run("pages", CASES / "pages", "--articles", tmp_path, "--project", "servekit")
    assert told.exit_code == 0
    assert "minutes.txt: no issue was found" in told.stderr
    articles = read(tmp_path)
    assert articles.keys() == {"faq", "resume"}
    one, two = articles["faq"].records
    assert (one.project, one.lang, one.sources) == ("servekit", "en", ("https://docs.example.org/servekit/faq",))
    assert one.title == 'RuntimeError: no adapter named "base" after a hot reload'
    assert 'RuntimeError: no adapter named "base"' in one.errors
    assert one.cause == "The reload drops the adapters' table and does not fill it again."
    assert '   # once\n   pip install -U "servekit>=1.8"' in one.fix
    assert one.fix.endswith("2. Or name the adapter in every request.")
    assert two.fix.startswith("Set `--workers 4`")
    text = (tmp_path / "en/faq.md").read_text("utf-8")
    assert not re.search("Home|newsletter|var x", text)
    (resume,) = articles["resume"].records
    assert (resume.lang, resume.errors) == ("zh", ("KeyError: 'optimizer_state'",))


@pytest.mark.parametrize(
    ("declared", "problem", "why", "remedy", "names"),
    [
        ("en", "训练到第三轮时程序退出。", "批大小太大。", "把批大小改小。", ["### 现象", "### 原因", "### 解决方案"]),
        (
            "zh-CN",
            "It stops.",
            "The batch is too large.",
            "Take a smaller one.",
            ["### Symptom", "### Cause", "### Fix"],
        ),
    ],
)
def test_a_draft_is_in_the_language_of_its_text(
    declared: str, problem: str, why: str, remedy: str, names: list[str]
) -> None:
    """A site's template says for all its pages in which language they are."""
    html = (
        f"<html lang='{declared}'><h1>RuntimeError: boom 7</h1><h2>Problem</h2><p>{problem}</p>"
        f"<h2>Cause</h2><p>{why}</p><h2>Solution</h2><p>{remedy}</p></html>"
    )
    draft = page_draft(html.encode(), "a.html")
    assert re.findall("^### .*", compose(draft), re.MULTILINE) == names


@pytest.mark.thorough
def test_a_page_of_ours_comes_back_as_it_was() -> None:
    """Every article of our own, imported: the same records but for their place."""
    for path, data in read_articles(Path(__file__).parents[1] / "articles"):
        assert isinstance(data, bytes)
        if not re.search("deepspeed", path):
            continue
        name = path.replace("en/", "").replace("zh/", "").replace(".md", f".{path[:2]}.md")
        draft = page_draft(data, name)
        fields = (
            "lang",
            "project",
            "title",
            "symptom",
            "cause",
            "fix",
            "errors",
            "aliases",
            "versions",
            "tags",
            "sources",
        )
        again = parse(compose(draft).encode(), path=path).records
        for one, other in zip(parse(data, path=path).records, again, strict=True):
            for name in fields:
                assert getattr(one, name) == getattr(other, name), (path, name)


FURNITURE = [
    "张三 发表于 2024-1-1",
    "发表于 2024-1-1 12:30:05 | 只看该作者 | 倒序浏览",
    "Share on Twitter",
    "- Share on LinkedIn",
    "分享到：微信 微博",
]


@pytest.mark.parametrize("line", FURNITURE)
def test_lines_of_a_forum_are_not_told(line: str) -> None:
    text = "# Training stops\n\n## Symptom\n\n{0}\n\nIt prints\n\n```\nRuntimeError: boom 7\n{0}\n```\n\n"
    (told,) = page_draft(f"{text.format(line)}## Fix\n\nSet it to 1.\n\n{line}\n".encode(), "a.md").issues
    assert told.symptom.count(line) == 1  # in the log
    assert told.fix == "Set it to 1."


def test_what_pages_are(tmp_path: Path) -> None:
    site = tmp_path / "site"
    (site / "deep").mkdir(parents=True)
    faq = (CASES / "pages/faq.html").read_bytes()
    for name in ("a.html", "deep/a.html", ".hidden.html", "picture.png", "empty.html", "b.HTM"):
        (site / name).write_bytes(b"" if name == "empty.html" else faq)
    (site / "huge.html").write_bytes(b"<p>x" * 600_000)
    (site / "binary.html").write_bytes(bytes(range(256)) * 9)
    (site / "link.html").symlink_to(site / "a.html")
    told = run("pages", site, "--articles", tmp_path / "a")
    # three copies of one page name one address: the first is kept
    assert told.stdout.splitlines() == [str(tmp_path / "a/en/a.md")]
    assert "huge.html: larger than" in told.stderr
    assert "empty.html: empty" in told.stderr
    assert "binary.html: not HTML" in told.stderr


def page(title: str, line: str, address: str = "") -> str:
    head = f'<link rel="canonical" href="{address}">' if address else ""
    return f"<html>{head}<h1>{title}</h1><pre>RuntimeError: {line}</pre><h2>Fix</h2><p>Set {line} to 1.</p></html>"


@pytest.mark.parametrize(
    "pages",
    [
        {"vLLM显存不足怎么办.html": page("a", "boom 7"), "vLLM启动失败.html": page("b", "flux is 0")},
        {"显存不足.html": page("a", "boom 7"), "启动失败.html": page("b", "flux is 0")},
        {
            f"{n}.html": page(f"t{n}", f"boom {n}", f"https://bbs.example.org/f.php?mod=viewthread&tid={n}")
            for n in (1, 2)
        },
        {f"{n}/faq.html": page(f"t{n}", f"boom {n}", f"https://example.org/#/faq/{n}") for n in (1, 2)},
        {"a-b.html": page("a", "boom 7"), "a b.html": page("b", "flux is 0"), "a/b.html": page("c", "loss is NaN")},
    ],
    ids=["Chinese lost", "all Chinese", "query", "route", "one slug"],
)
def test_different_pages_are_all_taken_and_none_twice(pages: dict[str, str], tmp_path: Path) -> None:
    for name, text in pages.items():
        (tmp_path / "site" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "site" / name).write_text(text, "utf-8")
    for words in (f"{len(pages)} drafts written, 0 there already", f"0 drafts written, {len(pages)} there already"):
        assert words in run("pages", tmp_path / "site", "--articles", tmp_path / "a").stderr
    assert len(read(tmp_path / "a")) == len(pages)


def test_pages_of_one_name_in_several_folders(tmp_path: Path) -> None:
    files = [tmp_path / name for name in ("a/faq.html", "b/faq.html", "c/faq.html")]
    for file, line in zip(files, ("boom 7", "flux is 0", "boom 7"), strict=True):
        file.parent.mkdir()
        file.write_text(page("Training stops", line), "utf-8")
    told = run("pages", *files, "--articles", tmp_path / "k")
    assert "2 drafts written, 1 there already" in told.stderr  # the third is the first, to the letter
    assert read(tmp_path / "k").keys() == {"faq", "faq-2"}
    kept = tmp_path / "k/en/faq-2.md"
    kept.write_text(kept.read_text("utf-8").replace("status: draft\n", "") + "\nReviewed and told better.\n", "utf-8")
    assert "0 drafts written, 3 there already" in run("pages", *files, "--articles", tmp_path / "k").stderr


def test_one_that_cannot_be_kept_ends_no_import(tmp_path: Path) -> None:
    (tmp_path / "a/en").mkdir(parents=True)
    (tmp_path / "a/en/faq.md").symlink_to(tmp_path / "nowhere")
    told = run("pages", CASES / "pages", "--articles", tmp_path / "a")
    assert told.exit_code == 0
    assert "faq.md: something that is no article has this name" in told.stderr
    assert read(tmp_path / "a").keys() == {"resume"}
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "gb18030"])
def test_encodings_of_pages(encoding: str) -> None:
    head = '<meta charset="gbk">' if encoding == "gb18030" else ""
    assert read_html(f"<html>{head}<p>显存不足</p>".encode(encoding)).markdown == "显存不足\n"


HTML = {
    "<h2>A</h2><p>b<br>c</p>": "## A\n\nb\nc\n",
    "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>": "- a\n   - b\n- c\n",
    "<table><tr><th>a</th><th>b</th></tr><tr><td>1|</td><td><p>2</p></td></tr></table>": (
        "| a | b |\n| --- | --- |\n| 1\\| | 2 |\n"
    ),
    "<blockquote><p>said</p></blockquote>": "> said\n",
    "<p>a <code>b</code> <b>c</b></p><style>x</style><p hidden>d</p>": "a `b` **c**\n",
    "<pre>a\n ``` b</pre>": "````\na\n ``` b\n````\n",
    "<div style='display: none'>a</div>b</div></p></ul></td>": "b\n",
    "<nav>a<p>b": "\n",
    "<p>a<script>if (x < y) { '</p>' }</script>b": "ab\n",
    "<pre><code class='language-bash'><div>a</div><div>b</div></code></pre>": "```bash\na\nb\n```\n",
    "<table><tr><td>E1<td>a<tr><td>E2<td>b</table>": "| E1 | a |\n| --- | --- |\n| E2 | b |\n",
    "<h2><a href='#x'>Fix</a></h2><p>kill -9 &lt;pid&gt;</p>": "## Fix\n\nkill -9 <pid>\n",
    "<ol start=9><li>a<li>b<pre>c</pre></ol>": "9. a\n10. b\n\n    ```\n    c\n    ```\n",
    f"<p>frame</p><main>{'word ' * 50}</main>": f"{('word ' * 50).strip()}\n",
    f"<article>{'one ' * 30}<article>in</article></article><article>{'two ' * 30}</article>rest": (
        f"{('one ' * 30).strip()}\n\nin\n\n{('two ' * 30).strip()}\n"
    ),
}


PROSE = (
    "<p>When the disk of a node is full, the agent stops, and no pod starts there until somebody frees some space.</p>"
    * 3
)
CODE = "<table><tr><td><pre>1\n2</pre></td><td><pre>df -h\ndu -sh *</pre></td></tr></table>"
OTHER = "<a href=x>Some other post</a>"
POST = f"<div class=post><h1>The disk of a node is full</h1>{PROSE}</div>"
SITES = {
    "side": f"<div id=side><ul>{f'<li>{OTHER}</li>' * 9}</ul></div>{POST}",
    "related": f"{POST}<div class=related><h3>Related</h3>{OTHER}</div>",
    "comments": f"{POST}<div class=comments><p>Some other post, thanks!</p></div>",
    "title": f"<title>The disk of a node is full - Blog</title><div>{OTHER}</div><div class=post>{PROSE}</div>",
    "form": f"<form>{POST}<div class=links>{OTHER}</div></form>",
    "hidden": f"{POST}<div style='color: red; display:none'>{OTHER}</div>",
}


@pytest.mark.parametrize("site", SITES)
def test_of_a_site_the_article_is_told(site: str) -> None:
    told = read_html(f"<html><body>{SITES[site]}</body></html>").markdown
    assert told.startswith("# The disk of a node is full\n")
    assert told.count("When the disk") == 3
    assert "other post" not in told


def test_code_beside_its_line_numbers_is_code() -> None:
    told = read_html(f"<div class=post>{PROSE}<figure class='highlight bash'>{CODE}</figure>{PROSE}</div>").markdown
    assert "```bash\ndf -h\ndu -sh *\n```\n" in told
    assert "|" not in told


@pytest.mark.parametrize("html", HTML)
def test_html(html: str) -> None:
    assert read_html(html).markdown == HTML[html]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "unit",
    [
        "<a ",
        "<a href='",
        "<!--",
        "</",
        "<",
        "<div>",
        "<ul><li>a",
        "<li>a",
        "<tr><td>a",
        "<b>x",
        "<p>x",
        "<![CDATA[",
        "&",
        "<div><p>a sentence, with a comma, that counts as text</p>",
        "<div><p>a sentence, with a comma, that counts as text</p></div>",
        "<form></form><p>a sentence, with a comma, that counts</p>",
    ],
)
def test_html_is_read_in_linear_time(unit: str, size: int = 1 << (20 if THOROUGH else 18)) -> None:
    """A megabyte, or a fourth of it; with Python's own parser 20,000 characters of `<a ` took 11 s."""
    started = time.process_time()
    read_html(unit * (size // len(unit)))
    assert time.process_time() - started < 10


def test_without_the_extra_the_way_to_get_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "html_to_markdown", None)
    told = CliRunner().invoke(cli, ["import", "pages", str(CASES / "pages"), "--articles", str(tmp_path)])
    assert isinstance(told.exception, ExtraMissing)
    assert 'pip install "kb-issues[import]"' in str(told.exception.hint)
    assert run("pages", CASES / "pages" / "resume.md", "--articles", tmp_path).exit_code == 0  # no HTML, no need


tags = st.sampled_from(
    "p div pre code ul ol li table tr td h1 h3 blockquote article main nav script b br title html".split()
)
soup = st.lists(
    st.builds("<{}>".format, tags) | st.builds("</{}>".format, tags) | st.text(max_size=12) | st.sampled_from(BREAKERS),
    max_size=40,
).map("".join)


@given(soup)
@settings(max_examples=examples(120))
def test_any_html_is_read(text: str) -> None:
    page = read_html(text)
    assert "\0" not in page.markdown
    try:
        draft = page_draft(text.encode("utf-8", "replace"), "a.html")
    except ArticleError:
        return
    assert len(parse(compose(draft).encode(), path="en/a.md").records) == len(draft.issues)
