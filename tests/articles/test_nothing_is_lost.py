"""Conservation: every heading of an article is in a record or in a remark, whatever surrounds it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import check_growth, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.articles.own import OWN_LABELS
from kb.records import Article
from kb.scraped import parse
from kb.scraped.labels import role_of

TAIL = "\n\n## Later heading\n\n### Symptom\n\nIt fails late.\n\n### Fix\n\nRestart it.\n"


def texts_of(article: Article) -> str:
    parts = [article.title]
    for record in article.records:
        parts += [record.title, record.symptom, record.cause, record.fix, record.only_when, record.confusable]
    parts += [remark.text for remark in article.remarks]
    return "\n".join(parts)


def is_kept(article: Article, heading: str, line: int) -> bool:
    inside = any(record.source.first_line <= line <= record.source.last_line for record in article.records)
    return heading in texts_of(article) or (bool(role_of(heading) or heading.casefold() in OWN_LABELS) and inside)


LABELS = [
    "Symptom",
    "Cause",
    "Fix",
    "Prevention",
    "Environment",
    "Summary",
    "现象",
    "根本原因",
    "解决方案",
    "最佳实践",
    "背景",
    "Symptoms",
    "Root cause",
    "Resolution",
    "Timeline",
    "FAQ",
    "目录",
    "How it works",
    "Only when",
    "Not to be confused with",
]
BODIES = [
    "",
    "It fails with `error: boom`.",
    "因为磁盘已满，写入失败。",
    "Set `a` to 1.\n\n- one\n- two",
    "```\nRuntimeError: x\n```",
    "> quoted words",
    "| a | b |\n|---|---|\n| c | d |",
    "<details>\n<summary>More</summary>\n\ntext\n</details>",
    "**Q: why?**\n\nA: because.",
    "1. one\n2. two",
    "原因：内存不足。\n解决：加内存。",
    "    indented",
]
TITLES = st.from_regex(r"Unique [a-z]{3,8} [a-z]{3,8} (stops|works|is slow)", fullmatch=True)


@st.composite
def articles(draw: st.DrawFn) -> tuple[str, list[tuple[str, int]]]:
    lines: list[str] = []
    headings: list[tuple[str, int]] = []
    for _ in range(draw(st.integers(1, 9))):
        text = draw(st.one_of(st.sampled_from(LABELS), TITLES))
        if draw(st.integers(0, 5)) == 0 and lines:
            lines += ["", text, "======" if draw(st.booleans()) else "------"]
            headings.append((text, len(lines) - 1))
        else:
            lines += ["", "#" * draw(st.integers(1, 6)) + " " + text]
            headings.append((text, len(lines)))
        lines += ["", *draw(st.sampled_from(BODIES)).split("\n")]
    return "\n".join(lines), headings


@pytest.mark.thorough
@settings(max_examples=examples(250), deadline=None)
@given(articles())
def test_every_heading_is_in_a_record_or_a_remark(drawn: tuple[str, list[tuple[str, int]]]) -> None:
    text, headings = drawn
    article = parse(text.encode(), path="a.md")
    lost = [heading for heading, line in headings if not is_kept(article, heading, line)]
    assert not lost


def nested(depth: int, mark: str = "-") -> str:
    return "# Title\n\n" + "".join("  " * n + f"{mark} level {n}\n" for n in range(depth))


@pytest.mark.parametrize(
    ("before", "remark"),
    [
        (nested(10), ""),
        (nested(50), "recovered"),
        (nested(400), "recovered"),
        ("# Title\n\n" + "> " * 400 + "deep", ""),
        ("# Title\n\nText.\n\n```\nlog without an end", "recovered"),
        ("# Title\n\n~~~text\nlog", "recovered"),
        ("# Title\n\n- item\n  ```\n  code in an item", ""),
        ("# Title\n\n<!-- never closed", "recovered"),
        ("# Title\n\n<pre>\nnever closed", "recovered"),
        ("# Title\n\n<details>\n<summary>x</summary>", ""),
        ("\ufeff# Title\n\ntext", ""),
        ("# Title\n\n| a | b\n|---|---", ""),
        ("# Title\n\n[a]: http://x 'never closed", ""),
    ],
    ids=[
        "list-10",
        "list-50",
        "list-400",
        "quote-400",
        "fence",
        "tilde",
        "fence-in-item",
        "comment",
        "pre",
        "details",
        "bom",
        "table",
        "reference",
    ],
)
def test_what_follows_is_still_read(before: str, remark: str) -> None:
    article = parse((before + TAIL).encode(), path="a.md")
    assert [record.title for record in article.records] == ["Later heading"]
    assert article.records[0].fix == "Restart it."
    if remark:
        assert remark in [found.kind for found in article.remarks]


def test_headings_inside_quotes_and_html_are_kept() -> None:
    text = (
        "# Title\n\n> ## Quoted heading\n> words\n\n<div>\n## Heading in HTML\n</div>\n\n- # Heading in an item\n"
        + TAIL
    )
    found = texts_of(parse(text.encode(), path="a.md"))
    for heading in ("Quoted heading", "Heading in HTML", "Heading in an item", "Later heading"):
        assert heading in found


def test_a_comment_in_a_fence_is_no_heading() -> None:
    text = "# T\n\n## Symptom\n\nFails.\n\n## Fix\n\n```bash\n# Symptom\n\n## Cause\nrun it\n```\n"
    (record,) = parse(text.encode(), path="a.md").records
    assert "## Cause\nrun it" in record.fix
    assert record.cause == ""


GROWERS: dict[str, Callable[[int], str]] = {
    "quotes": lambda n: "> " * n,
    "brackets": lambda n: "[" * n,
    "images": lambda n: "![" * n,
    "backticks": lambda n: "`" * n,
    "spaced backticks": lambda n: "` " * n,
    "strong": lambda n: "**a" * n,
    "comments": lambda n: "<!--" * n,
    "comment lines": lambda n: "<!--\n" * n,
    "table": lambda n: "|a|b|\n|-|-|\n" + "|c|d|\n" * (n // 4),
    "references": lambda n: "[a]: b\n" * (n // 4),
    "nested list": lambda n: nested(10) * (n // 250),
    "list": lambda n: "- a\n" * (n // 4),
    "headings": lambda n: "# a\n" * (n // 8),
    "labels": lambda n: "原因：x\n" * (n // 8),
    "one character": lambda n: "a" * (n * 4),
    "one ideograph": lambda n: "的" * (n * 4),
    "spaces": lambda n: " " * (n * 4) + "x",
    "quotes in a line": lambda n: "\"'" * n,
    "questions": lambda n: "Q: a\n\nA: b\n\n" * (n // 16),
    "sentences": lambda n: "It fails. " * (n // 4),
    "bullets": lambda n: "-\n\ntext\n" * (n // 16),
    "html": lambda n: "<b>" * n,
    "pipes": lambda n: "|" * n + "\n" + "-|" * n + "\n" + "|" * n,
}


@pytest.mark.parametrize("name", GROWERS)
def test_time_grows_with_the_text(name: str) -> None:
    def article(size: int) -> Callable[[], object]:
        data = ("# Title\n\n## Symptom\n\nFails.\n\n" + GROWERS[name](size)).encode()
        return lambda: parse(data, path="a.md")

    check_growth(article, 500)
