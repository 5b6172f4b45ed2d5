"""From a folder of files to articles: which are read, what their issues are called, their languages and projects."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import FakeEncoder, Write, article

from kb.articles.assumed import Assumed
from kb.articles.mdx import without_jsx
from kb.articles.source import filed_lang, place_of, slug_of, suffix_lang
from kb.base import KnowledgeBase
from kb.cli import cli
from kb.errors import ArticleError
from kb.index.build import BuildFailed, build
from kb.index.fsck import check_index
from kb.scraped import parse

# path -> slug, language of a folder, language of the name's end
NAMES: dict[str, tuple[str, str | None, str | None]] = {
    "en/a.md": ("a", "en", None),
    "zh/a.md": ("a", "zh", None),
    "a.md": ("a", None, None),
    "a.zh.md": ("a", None, "zh"),
    "a.zh-CN.md": ("a", None, "zh"),
    "a.b.md": ("a.b", None, None),
    "en.md": ("en", None, None),
    "out of memory.md": ("out-of-memory", None, None),
    "what?! (1).md": ("what-1", None, None),
    "显存 不足.md": ("显存-不足", None, None),
    "cafe\u0301.md": ("café", None, None),
    "_index.md": ("index", None, None),
    "a_b+c.d-e.md": ("a_b+c.d-e", None, None),
    "longhorn/x.mdx": ("longhorn-x", None, None),
    "en/gpu/deep/x.md": ("gpu-deep-x", "en", None),
    "docs/zh-CN/x.md": ("docs-x", "zh", None),
    "docs/zh_Hans/x.md": ("docs-x", "zh", None),
    "en-US/x.md": ("x", "en", None),
    "english/x.md": ("english-x", None, None),
    "zh/en/x.md": ("en-x", "zh", None),
    "rook/README.md": ("rook-README", None, None),
    f"{'a' * 300}.md": (f"{'a' * 191}-9835fa6b", None, None),
}


@pytest.mark.parametrize("path", NAMES)
def test_names(path: str) -> None:
    assert (slug_of(path), filed_lang(path), suffix_lang(path)) == NAMES[path]


@pytest.mark.parametrize("path", ["!!!.md", "en/  .md", "…/——.md", ".md"])
def test_a_name_without_a_letter_is_refused(path: str) -> None:
    with pytest.raises(ArticleError, match="cannot name an issue") as caught:
        slug_of(path)
    assert "letters or digits" in (caught.value.hint or "")


def test_odd_names_stop_no_build(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    folder = write(
        {
            "out of memory.md": article("boom at 7"),
            "net/lost link.md": article("link is down"),
            "disk/lost link.md": article("disk is gone"),
            "!!!.md": article("nobody"),
        }
    )
    with pytest.raises(BuildFailed):
        build(folder, tmp_path / "index", encoder=encoder)
    report = build(folder, tmp_path / "index", encoder=encoder, keep_going=True)
    assert [error.path for error in report.bad] == ["!!!.md"]
    with KnowledgeBase.open(tmp_path / "index", encoder=encoder) as base:
        assert {r.issue for r in base.records()} == {"out-of-memory#1", "net-lost-link#1", "disk-lost-link#1"}


def test_two_names_that_give_one_slug_are_both_named_and_the_first_is_built(
    tmp_path: Path, write: Write, encoder: FakeEncoder
) -> None:
    folder = write({"a b.md": article("boom"), "a-b.md": article("crash"), "a/b.md": article("hang")})
    report = build(folder, tmp_path / "index", encoder=encoder, keep_going=True)
    assert (report.articles, len(report.bad)) == (1, 2)
    for error, path in zip(report.bad, ("a-b.md", "a/b.md"), strict=True):
        assert (error.path, error.message) == (
            path,
            "a-b#1/en is already in a b.md: the two names give the same ids",
        )


def test_nothing_is_published_when_no_article_can_be_read(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    folder, index = write({"a.md": article("boom")}), tmp_path / "index"
    before = build(folder, index, encoder=encoder).snapshot
    write({"a.md": b"\0"})
    with pytest.raises(BuildFailed):
        build(folder, index, encoder=encoder, keep_going=True)
    with KnowledgeBase.open(index, encoder=encoder) as base:
        assert base.searcher.snapshot == before


def test_a_readme_is_read_for_its_issues(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    folder, index = tmp_path / "articles", tmp_path / "index"
    write({"README.md": "# About\n\nThese are our notes.\n", "en/a.md": article("boom at 7")})
    report = build(folder, index, encoder=encoder)
    assert [(one.path, one.reason) for one in report.skipped] == [("README.md", "a README without an issue")]
    assert (report.articles, report.without_records) == (1, ())
    write({"README.md": article("flux is 0")})
    assert build(folder, index, encoder=encoder).skipped == ()
    with KnowledgeBase.open(index, encoder=encoder) as base:
        assert [record.issue for record in base.records()] == ["a#1", "README#1"]
    write({"README.md": "# About\n\nThese are our notes.\n"})
    assert build(folder, index, encoder=encoder).removed == 1


def test_a_readme_without_an_issue_is_no_lag(tmp_path: Path, write: Write) -> None:
    folder = write({"README.md": "# About\n\nThese are our notes.\n", "en/a.md": article("boom at 7")})
    build(folder, tmp_path / "index")
    assert check_index(tmp_path / "index", folder) == []


def test_files_that_are_left_out_are_named_once(tmp_path: Path, write: Write) -> None:
    folder = write(
        {
            "en/a.md": article("boom"),
            "guide.rst": "Title\n=====\n",
            "page.html": "<h1>x</h1>",
            "picture.png": b"\x89PNG",
            "bad.md": b"\0",
            "plain.md": "just words\n",
        }
    )
    ran = CliRunner().invoke(cli, ["build", "--articles", str(folder), "--index", str(tmp_path / "index")])
    assert ran.exit_code == 65
    assert "left out (not Markdown): guide.rst, page.html" in ran.stderr
    assert "bad.md:1: binary" in ran.stderr
    assert "1 article left out; the index holds the others" in ran.stderr
    assert "no issue found in plain.md;" in ran.stderr
    assert "picture.png" not in ran.stderr
    assert all(ran.stderr.count(name) == 1 for name in ("guide.rst", "page.html", "bad.md", "plain.md"))
    assert "2 articles (2 new" in ran.stdout


MDX = """\
---
project: Demo
---
import Tabs from '@theme/Tabs';
import {
  A,
  B,
} from './x'
export const version = "1.2"

# Volumes {/* draft? */}

<Tabs>
<TabItem value="linux"
  default>

## It cannot be mounted

### Symptom

import the disk from the pool prints <Version/>:

```jsx
import X from 'y'
<Tabs>
RuntimeError: boom at 7
```

### Fix

{/* a long
comment */}
Set it to 1.

</TabItem>
</Tabs>
"""


def test_mdx_is_read_as_markdown() -> None:
    (record,) = parse(MDX.encode(), path="en/volumes.mdx").records
    assert record.fix == "Set it to 1."
    assert record.symptom.startswith("import the disk from the pool prints :")
    assert "import X from 'y'\n<Tabs>\nRuntimeError: boom at 7" in record.symptom
    assert record.errors[0] == "RuntimeError: boom at 7"
    lines = MDX.split("\n")
    assert lines[record.source.first_line - 1] == "## It cannot be mounted"
    assert len(without_jsx(lines)) == len(lines)


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("a < b and c > d", "a < b and c > d"),
        ("`<Tabs>` and `{/* x */}` here", "`<Tabs>` and `{/* x */}` here"),
        ('<Accordion title="How">', '<Accordion title="How">'),
        ("{x} <details>", "{x} <details>"),
        ("import the model from the hub", "import the model from the hub"),
        ("see <Badge text='x'/> below", "see  below"),
        ("<>both</>", "both"),
        ("export const a = 1;", ""),
    ],
)
def test_what_only_looks_like_jsx_or_has_a_title_stays(line: str, kept: str) -> None:
    assert without_jsx([line, "after"]) == [kept, "after"]


def test_what_is_never_closed_takes_nothing_away() -> None:
    for opened in ("{/* never closed", "<Tabs", "see <Tabs and"):
        lines = [opened, *["text"] * 100]
        assert without_jsx(lines) == lines


# path, language in its front matter -> language
LANGS = {
    ("longhorn/x.md", ""): "en",
    ("longhorn/x.zh.md", ""): "zh",
    ("zh/longhorn/x.md", ""): "zh",
    ("longhorn/zh/x.md", "en"): "zh",
    ("longhorn/x.md", "zh"): "zh",
}


@pytest.mark.parametrize(("path", "stated"), LANGS)
def test_the_language_of_an_article(path: str, stated: str) -> None:
    text = article("boom").replace("---\n", f"---\nlang: {stated}\n" if stated else "---\n", 1)
    assert parse(text.encode(), path=path).lang == LANGS[path, stated]
    if not filed_lang(path) and not stated and not suffix_lang(path):
        assert parse(text.encode(), path=path, lang="zh").lang == "zh"


PROJECTS = {"longhorn/": "Longhorn", "longhorn/ui": "Longhorn UI", "k8s-*": "Kubernetes", "*.mdx": "Docs"}


@pytest.mark.parametrize(
    ("path", "project"),
    [
        ("longhorn/x.md", "Longhorn"),
        ("en/longhorn/x.md", "Longhorn"),
        ("longhorn/ui/x.md", "Longhorn UI"),
        ("zh/k8s-pod.md", "Kubernetes"),
        ("x.mdx", "Docs"),
        ("longhorn.md", None),
        ("old/longhorn/x.md", None),
    ],
)
def test_the_project_of_a_folder(path: str, project: str | None) -> None:
    assert Assumed(PROJECTS).of(path)["project"] == project
    assert place_of(f"en/{path}").endswith(path)


def test_a_project_is_assumed_only_where_none_is_named(tmp_path: Path, write: Write, encoder: FakeEncoder) -> None:
    silent = article("boom at 7").replace("project: Demo", "tags: []")
    folder, index = write({"longhorn/a.md": silent, "longhorn/b.md": article("flux is 0")}), tmp_path / "index"

    def projects(**options: dict[str, str]) -> list[str | None]:
        KnowledgeBase.build(folder, index, encoder=encoder, **options)  # type: ignore[arg-type]
        with KnowledgeBase.open(index, encoder=encoder) as base:
            return [record.project for record in base.records()]

    assert projects() == [None, "Demo"]
    plain = (index / "manifest.json").read_bytes()
    assert projects(projects={"longhorn/": "Longhorn"}) == ["Longhorn", "Demo"]
    assert projects(projects={"longhorn/": "Rook"}) == ["Rook", "Demo"]
    assert projects() == [None, "Demo"]
    assert (index / "manifest.json").read_bytes() == plain
    parsed = CliRunner().invoke(cli, ["parse", "--project", "Longhorn", "--json", str(folder / "longhorn/a.md")])
    assert '"project": "Longhorn"' in parsed.stdout
    assert '"issue": "longhorn-a#1"' in parsed.stdout
