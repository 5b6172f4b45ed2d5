"""Here are classified lines; undo what web pages and scraping did to them, line by line.

Tags of a known list go, entities become characters, a bullet torn from its text comes back to it, and inline code
that was moved to a line of its own returns into its sentence. `<image>`, `<pid>` and `<|pad|>` are text and stay.
"""

from __future__ import annotations

import html
import re

from kb.articles.lines import Line
from kb.logs.classify import opens_with_error
from kb.scraped.labels import role_of

__all__ = ["clean"]

_TAG = re.compile(
    r"</?(?:a|abbr|article|aside|b|big|blockquote|br|center|code|dd|details|div|dl|dt|em|figcaption|figure|font|footer|"
    r"header|hr|i|ins|kbd|li|main|mark|nav|ol|p|pre|s|samp|section|small|span|strong|sub|summary|sup|table|tbody|td|"
    r"tfoot|th|thead|tr|tt|u|ul|var)(?:\s[^<>\n]{0,500})?/?>",
    re.IGNORECASE,
)
_IMAGE = re.compile(r"<img\s[^<>\n]{0,500}>|!\[[^\]\n]{0,200}\]\([^)\n]{0,500}\)", re.IGNORECASE)
_HTML_HEADING = re.compile(
    r"^\s{0,20}<(h[1-6]|summary|dt)(?:\s[^<>\n]{0,300})?>(.{1,300}?)</\1>\s{0,20}$", re.IGNORECASE
)
_PRE = re.compile(r"<(/?)pre(?:\s[^<>\n]{0,300})?>", re.IGNORECASE)
_COMMENT = re.compile(r"<!--.{0,2000}?-->")
_ROW_END = re.compile(r"</t[dh]>\s{0,20}<t[dh](?:\s[^<>\n]{0,200})?>", re.IGNORECASE)
_MOJIBAKE = {"â€¢": "•", "β€¢": "•", "â€“": "–", "β€“": "–", "â€”": "—", "β€”": "—", 'β€"': "—", 'â€"': "—", "â€œ": "“",
             "â€™": "’", "β€™": "’", "Â ": " ", "Â\xa0": " "}  # fmt: skip
_TORN_BULLET = re.compile(r"^\s{0,8}[-*•·]\s{0,4}")
_CODE_WORD = re.compile(r"[\x21-\x7e]{1,80}(?: [\x21-\x7e]{1,40}){0,3}")
_TELLS = re.compile(r"(?:打印|提示|报错?|输出|显示|抛出|出现|返回|执行|运行|写着)了?$")
_PRINTED = re.compile(r"[\x20-\x7e]{4,160}")
_NAME_LIKE = re.compile(r"[_./=\-\d(<]|[a-z][A-Z]|[a-z]{2}")
_CLOSED = re.compile(r"[。.;；:：!！?？|>}\])】]\s{0,4}$|\s-$")
_CJK_END = re.compile(r"[\u4e00-\u9fff、，,]$")


def clean(lines: list[Line], *, scraped: bool) -> list[Line]:
    """The same lines with cleaned texts; a joined line keeps the number of its first. `scraped`: no marks were left."""
    in_pre = False
    for line in lines:
        if line.kind in ("html", "text", "heading", "table"):
            in_pre = _clean_line(line, in_pre)
    return _join_code(_join_bullets(lines)) if scraped else lines


def _clean_line(line: Line, in_pre: bool) -> bool:
    text = line.text
    if "<" not in text and "&" not in text and not in_pre and line.kind != "html" and text.isascii():
        return False
    pre = [mark[1] == "" for mark in _PRE.finditer(text)] if "<" in text else []
    if line.kind == "html" and (heading := _HTML_HEADING.match(text)):
        level = int(heading[1][1]) if heading[1][1].isdigit() else 0
        inner = html.unescape(_TAG.sub("", heading[2])).strip()
        if level:
            line.kind, line.level, line.text = "heading", level, "#" * level + " " + inner
        elif role_of(inner) in ("", "related") or heading[1].lower() == "dt":
            line.kind, line.text = "text", f"**{inner}**"
        else:
            line.kind, line.text = "text", f"**{inner}**"
        return in_pre
    if "<" in text:
        text = _IMAGE.sub("", _COMMENT.sub("", text))
        text = _TAG.sub("", _ROW_END.sub(" | ", text))
    elif "![" in text:
        text = _IMAGE.sub("", text)
    if "&" in text:
        text = html.unescape(text)
    for wrong, right in _MOJIBAKE.items():
        if wrong in text:
            text = text.replace(wrong, right)
    line.text = text.replace("\xa0", " ").rstrip("¶") if "¶" in text or "\xa0" in text else text
    if line.kind == "html":
        line.kind = "code" if in_pre or (pre and pre[0]) else "text"
    if not line.text.strip():
        line.kind = "blank"
    return pre[-1] if pre else in_pre


def _join_bullets(lines: list[Line]) -> list[Line]:
    """`-` alone, then its text on the next line: one list item again."""
    joined: list[Line] = []
    bullet: Line | None = None
    for line in lines:
        if bullet is not None and line.kind == "blank":
            continue
        if bullet is not None and line.kind == "text":
            line.text = f"{bullet.text.rstrip()} {line.text.strip()}"
            line.no = bullet.no if line.no - bullet.no <= 2 else line.no
        bullet = line if line.kind in ("text", "rule") and _TORN_BULLET.fullmatch(line.text) else None
        if bullet is None:
            joined.append(line)
        else:
            bullet.text = bullet.text.replace("•", "-")
    return joined


def _join_code(lines: list[Line]) -> list[Line]:
    """`将` / `map_num_proc` / `参数设置为1`: three lines, one sentence."""
    joined: list[Line] = []
    n = 0
    while n < len(lines):
        line = lines[n]
        before = joined[-1] if joined else None
        after = lines[n + 1] if n + 1 < len(lines) else None
        if before and after and _is_torn(before, line, after):
            before.text = f"{before.text.rstrip()} `{line.text.strip()}` {after.text.strip()}"
            n += 2
            continue
        joined.append(line)
        n += 1
    return joined


def _is_torn(before: Line, line: Line, after: Line) -> bool:
    word = line.text.strip()
    if before.kind != "text" or line.kind != "text" or after.kind != "text":
        return False
    told = _TELLS.search(before.text.strip()) is not None and _PRINTED.fullmatch(word) is not None
    told = told and not opens_with_error(word) and len(after.text) > 16
    if not (told or _CODE_WORD.fullmatch(word)) or not _NAME_LIKE.search(word) or word[-1] in ".:;":
        return False
    start = before.text.strip()
    if _CLOSED.search(start) or not _CJK_END.search(start) or role_of(start):
        return False
    follows = after.text.strip()
    return (not role_of(follows) and not follows[0].isascii()) or follows[:1] in ",.;("
