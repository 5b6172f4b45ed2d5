"""Bytes that are no article are refused with their place; bytes that are one are read whatever their line ends."""

from __future__ import annotations

import pytest

from kb.articles import MAX_BYTES
from kb.errors import ArticleError
from kb.scraped import parse

TEXT = "# 启动失败\n\n## 现象\n\n服务退出。\n\n## 解决方案\n\n重新安装。\n"


@pytest.mark.parametrize(
    ("data", "message", "hint"),
    [
        (TEXT.encode("gbk"), "not UTF-8 at byte 2", "GBK"),
        (TEXT.encode("utf-16"), "not UTF-8 at byte 0", "UTF-16"),
        (TEXT.encode("utf-16-be"), "not UTF-8", "UTF-16"),
        ("# Title\n\nplain words".encode("utf-16-le"), "NUL at byte 1", "UTF-16"),
        (b"# ok\n\nbad \xff byte", "not UTF-8 at byte 10", "damaged"),
        (b"# ok\n\x00\x01\x02", "NUL at byte 5", "text file"),
        (b"", "empty", "issue"),
        (b"\xef\xbb\xbf \r\n\n", "empty", "issue"),
        (b"\xed\xa0\x80", "not UTF-8 at byte 0", "damaged"),
        (b"a" * (MAX_BYTES + 1), "larger than 2,000,000 bytes", "split"),
    ],
    ids=["gbk", "utf-16", "utf-16-be", "utf-16-le-ascii", "junk", "nul", "empty", "blank", "surrogate", "large"],
)
def test_refused(data: bytes, message: str, hint: str) -> None:
    with pytest.raises(ArticleError) as caught:
        parse(data, path="zh/a.md")
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.path == "zh/a.md"


def test_the_line_of_a_bad_byte_is_named() -> None:
    with pytest.raises(ArticleError) as caught:
        parse(b"# ok\n\nfine\nbad \xff", path="a.md")
    assert caught.value.line == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\u2028", "\u2029", "\x85"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_marks_change_nothing(end: str, mark: str) -> None:
    expected = parse(TEXT.encode(), path="zh/a.md")
    assert parse((mark + TEXT.replace("\n", end)).encode(), path="zh/a.md") == expected
    assert expected.records[0].fix == "重新安装。"


def test_bidi_and_zero_width_characters_survive() -> None:
    text = TEXT.replace("服务退出。", "服务\u202e退出\u200b。")
    assert parse(text.encode(), path="zh/a.md").records[0].symptom == "服务\u202e退出\u200b。"


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("zh/12-vite.zh.md", "12-vite"),
        ("12-vite.en.md", "12-vite"),
        ("deep/er/12-vite.md", "deep-er-12-vite"),
        ("zh/..x.md", "x"),
        ("zh/a#1.md", "a-1"),
        ("zh/.hidden.md", "hidden"),
        ("zh/a b.md", "a-b"),
        ("zh/a\n.md", "a"),
        ("zh/a\x1b[0m.md", "a-0m"),
        ("zh/%2e%2e.md", "2e-2e"),
    ],
)
def test_any_name_is_made_a_key(name: str, slug: str) -> None:
    assert parse(TEXT.encode(), path=name).slug == slug


def test_a_long_name_keeps_its_beginning() -> None:
    slugs = {parse(TEXT.encode(), path=f"zh/{'x' * 300}{end}.md").slug for end in "ab"}
    assert len(slugs) == 2 and all(slug.startswith("xxx") and len(slug) <= 200 for slug in slugs)


@pytest.mark.parametrize("stem", ["..", "", "___"])
def test_names_that_cannot_be_keys(stem: str) -> None:
    with pytest.raises(ArticleError, match="cannot name an issue"):
        parse(TEXT.encode(), path=f"zh/{stem}.md")
