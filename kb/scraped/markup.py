"""Lines of a page, freed of what HTML, wikis and scraping did to them: every line is plain text of a known kind again.

HTML headings, tables, lists and `<pre>` become what Markdown would have; comments go; `== Heading ==` and underlined
headings are headings; entities are characters. On a page that has lost its marks, torn bullets and torn inline code are
joined. `<image>`, `<pid>` and `<|pad|>` are text and stay.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from kb.articles.lines import Line
from kb.logs.classify import is_command
from kb.scraped.code import fence_again
from kb.text import HAN

__all__ = ["plain_lines"]

_TAG = re.compile(
    r"</?(?:a|abbr|article|aside|b|big|blockquote|center|code|dd|details|div|dl|em|figcaption|figure|font|footer|"
    r"header|i|ins|kbd|main|mark|nav|ol|p|pre|s|samp|section|small|span|strong|sub|summary|sup|table|tbody|td|tfoot|th|"
    r"thead|tr|tt|u|ul|var|tabs?|note|tip|info|warning|callout|accordions?|accordiongroup|steps?|cards?|tabitem|h[1-6]|dt|li|hr)"
    r"(?:\s[^<>\n]{0,500})?/?>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<br\s{0,3}/?>|</li>(?=\s{0,9}\S)|(?<=\S)(?=<li[\s>])|</p>(?=\s{0,9}\S)", re.IGNORECASE)
_IMAGE = re.compile(r"<img\s[^<>\n]{0,500}>|!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)", re.IGNORECASE)
_HEADING = re.compile(
    r"^(?:\s{0,20}<(?:div|section|article|header|main|center)(?:\s[^<>\n]{0,200})?>){0,3}\s{0,20}<(h[1-6]|summary|dt)(?:\s[^<>\n]{0,300})?>(.{1,300}?)</\1>",
    re.IGNORECASE,
)
_TITLED = re.compile(
    r"^\s{0,20}<(?:Accordion|Tab|TabItem|Step|Collapse|Expandable|Card)\s[^<>\n]{0,200}?(?:title|label|header)=[\"']([^\"'\n]{3,200})[\"'][^<>\n]{0,200}>\s{0,9}$"
)
_PRE = re.compile(r"<(/?)pre(?:\s[^<>\n]{0,300})?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.{0,2000}?-->")
_WIKI = re.compile(r"^(={2,5})\s?([^=\n].{0,198}?)\s?\1\s{0,4}$")
_TERM = re.compile(r"^;\s{0,3}(\S.{0,198})$")
_UNDERLINE = re.compile(r"^([=\-~^\"'+*.])\1{2,200}\s{0,4}$")
_TORN_BULLET = re.compile(r"^\s{0,8}[-*•·]\s{0,4}$")
_BULLET_BEHIND = re.compile(r"(?<=[。；;.!！])\s{1,4}[-•·]\s{0,4}$")
_CODE_WORD = re.compile(r"[\x21-\x7e]{1,80}(?: [\x21-\x7e]{1,40}){0,3}")
_NAME_LIKE = re.compile(r"[_./=\-\d(<]|[a-z][A-Z]|[a-z]{2}")
_HAN_END = re.compile(rf"[{HAN}、，,]$")
_MEANT = {"â€¢": "•", "β€¢": "•", "â€“": "–", "β€“": "–", "â€”": "—", "β€”": "—", 'β€"': "—", 'â€"': "—", "â€œ": "“",
             "â€™": "’", "β€™": "’", "Â ": " ", "Â\xa0": " ", "\xa0": " "}  # fmt: skip
_MOJIBAKE = re.compile("|".join(_MEANT))


def plain_lines(lines: Sequence[Line]) -> list[Line]:
    """The lines in their order; a line that held `<br>` comes as several with the same number. Comments are blank."""
    done = fence_again(list(_tables(_without_html(_without_comments(lines)))))
    bare = not any(line.kind == "heading" for line in done)
    _mark_headings(done)
    _unmark_commands(done)
    return _join_code(_join_bullets(done)) if bare else done


def _without_comments(lines: Sequence[Line]) -> Iterator[Line]:
    inside = False
    for line in lines:
        text = line.text
        if line.kind in ("code", "fence") or not (inside or "<!--" in text):
            yield line
            continue
        if inside:
            _, closed, text = text.partition("-->")
            if not closed:
                yield replace(line, text="", kind="blank")
                continue
        text, opened, _ = (_COMMENT.sub("", text) if "-->" in text else text).partition("<!--")
        inside = bool(opened)
        yield replace(line, text=text, kind=line.kind if text.strip() else "blank")


def _without_html(lines: Iterator[Line]) -> Iterator[Line]:
    in_pre = False
    for line in lines:
        text = line.text
        if line.kind in ("code", "fence", "blank") or not (
            "<" in text or "&" in text or "![" in text or in_pre or line.kind == "html" or not text.isascii()
        ):
            yield line
            continue
        if not text.isascii():
            text = _MOJIBAKE.sub(lambda found: _MEANT[found[0]], text)
        marks = [mark[1] == "" for mark in _PRE.finditer(text)]
        heading = _HEADING.match(text)
        if heading and line.kind in ("html", "text"):
            inner = html.unescape(_TAG.sub("", heading[2])).strip()
            if heading[1][1].isdigit():
                yield replace(line, kind="heading", level=int(heading[1][1]), text=inner)
            else:
                yield replace(line, kind="text", text=f"**{inner}**")
            text = text[heading.end() :]
            if not _TAG.sub("", text).strip():
                continue
        if titled := _TITLED.match(text):
            yield replace(line, kind="text", text=f"**{html.unescape(titled[1])}**")
            continue
        cells = line.kind == "html" and re.search(r"<t[drh][\s>]|</t[rdh]>", text, re.IGNORECASE)
        kind = line.kind if line.kind != "html" else "code" if in_pre or (marks and marks[0]) else "text"
        for piece in [text] if cells else _BREAK.split(text):
            shown = _IMAGE.sub("", piece)
            if not cells:
                shown = re.sub(r"^\s{0,20}<li(?:\s[^<>]{0,200})?>", "- ", shown)
                shown = html.unescape(_TAG.sub("", shown)).rstrip("¶")
            yield replace(line, text=shown, kind="cells" if cells else kind if shown.strip() else "blank")
        in_pre = marks[-1] if marks else in_pre


def _tables(lines: Iterator[Line]) -> Iterator[Line]:
    """One line of cells between bars for each row of an HTML table."""
    row: Line | None = None
    for line in lines:
        if line.kind != "cells" and row is None:
            yield line
            continue
        opened = line.kind == "cells" and re.search(r"<tr[\s>]", line.text, re.IGNORECASE)
        if row is not None and opened:
            yield from _row(row)
            row = None
        row = replace(line) if row is None else replace(row, text=f"{row.text} {line.text.strip()}")
        if re.search(r"</t(?:r|able|body)>", line.text, re.IGNORECASE):
            yield from _row(row)
            row = None
    if row is not None:
        yield from _row(row)


def _row(line: Line) -> Iterator[Line]:
    cells = re.split(r"<t[dh](?:\s[^<>]{0,200})?>", line.text, flags=re.IGNORECASE)[1:]
    texts = [" ".join(html.unescape(_TAG.sub(" ", cell).replace("<br>", " ")).split()) for cell in cells]
    if texts:
        yield replace(line, text="| " + " | ".join(text.replace("|", "\\|") for text in texts) + " |", kind="table")


def _mark_headings(lines: list[Line]) -> None:
    for n, line in enumerate(lines):
        if line.kind == "rule" and n and lines[n - 1].kind == "heading" and not lines[n - 1].text.startswith("#"):
            line.kind, line.text = "blank", ""  # the underline of a setext heading
        if line.kind != "text":
            continue
        if wiki := _WIKI.match(line.text):
            line.kind, line.level, line.text = "heading", len(wiki[1]), "#" * len(wiki[1]) + " " + wiki[2]
        elif (term := _TERM.match(line.text)) and line.text.count(";") == 1:
            line.text = f"**{term[1]}**"
        elif n and _UNDERLINE.match(line.text) and lines[n - 1].kind == "text":
            title = lines[n - 1]
            alone = n == 1 or lines[n - 2].kind != "text"
            if alone and len(title.text) <= 120 and abs(len(title.text.encode("gbk", "replace")) - len(line.text)) <= 3:
                title.kind, title.level, line.kind, line.text = "heading", 2, "blank", ""


def _unmark_commands(lines: Sequence[Line]) -> None:
    """`# rm -f x` (a root prompt) and `# why` above a bare command are no headings."""
    for n, line in enumerate(lines):
        if line.kind == "heading" and line.level == 1 and line.text.startswith("# "):
            after = lines[n + 1] if n + 1 < len(lines) else None
            comment = after is not None and after.kind == "text" and is_command(after.text)
            if is_command(line.text[2:].strip()) or comment:
                line.kind, line.level = "code", 0


def _join_bullets(lines: list[Line]) -> list[Line]:
    """`-` alone, then its text on the next line: one list item again."""
    joined: list[Line] = []
    bullet: Line | None = None
    for line in lines:
        if bullet is not None and line.kind == "blank":
            continue
        if bullet is not None and line.kind == "text":
            line = replace(line, text=f"{bullet.text.strip().replace('•', '-')} {line.text.strip()}", no=bullet.no)
        bullet = line if line.kind in ("text", "rule") and _TORN_BULLET.match(line.text) else None
        if line.kind == "text" and bullet is None and (torn := _BULLET_BEHIND.search(line.text)):
            bullet = replace(line, text="-")
            line = replace(line, text=line.text[: torn.start()])
            joined.append(line)
        elif bullet is None:
            joined.append(line)
    return joined


def _join_code(lines: list[Line]) -> list[Line]:
    """`将` / `map_num_proc` / `参数设置为1`: three lines, one sentence."""
    joined: list[Line] = []
    n = 0
    while n < len(lines):
        line = lines[n]
        if joined and n + 1 < len(lines) and _is_torn(joined[-1], line, lines[n + 1]):
            joined[-1] = replace(
                joined[-1], text=f"{joined[-1].text.rstrip()} `{line.text.strip()}` {lines[n + 1].text.strip()}"
            )
            n += 2
            continue
        joined.append(line)
        n += 1
    return joined


def _is_torn(before: Line, line: Line, after: Line) -> bool:
    word = line.text.strip()
    if not before.kind == line.kind == after.kind == "text" or not _HAN_END.search(before.text.strip()):
        return False
    if not _CODE_WORD.fullmatch(word) or not _NAME_LIKE.search(word) or word[-1] in ".:;":
        return False
    follows = after.text.strip()
    return not follows[0].isascii() or follows[0] in ",.;("
