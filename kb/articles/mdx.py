"""Reads MDX as Markdown: what is program in it (imports, comments, tags of components) goes; lines keep their numbers.

Text between the tags stays. A tag with a title of its own (`<Accordion title="...">`) stays, too: on a page in another
form than ours it is a heading (`kb.scraped.markup`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.text.fences import prose_lines

__all__ = ["without_jsx"]

_MODULE = re.compile(
    r"(?:import\s[^\n'\"]{0,500}\sfrom\s['\"]|import\s['\"]|import\s(?:\w{1,60},\s)?\{|"
    r"export\s(?:default|const|let|function|\{|\*))"
)
_WHOLE = re.compile(r"[;'\"})\]]\s*$")
_TAG = re.compile(r"</?(?:[A-Z][\w.]{0,60}(?:\s[^<>\n]{0,500})?/?)?>")
_TITLED = re.compile(r"\s(?:title|label|header)=")
_COMMENT = re.compile(r"\{/\*.{0,2000}?\*/\}")
_CODE = re.compile(r"`[^`\n]{1,2000}`")
_GOES = re.compile(rf"{_CODE.pattern}|{_COMMENT.pattern}|{_TAG.pattern}")

_OPEN = re.compile(r"\{/\*|<[A-Z][\w.]{0,60}(?=\s[^<>\n]{0,500}$|$)")
_COMMENT_ENDS, _TAG_ENDS = re.compile(r"\*/\}"), re.compile(r"/?>")
_SOON = 40  # lines
_MODULE_ENDS = re.compile(r"^(?:[\]})][^\n]*|\s*|[^\n]*;\s*)$")


def without_jsx(lines: Sequence[str]) -> list[str]:
    """As many lines as came in. Fenced code is left as it is, and so is what is opened and not closed soon: better some
    marks in a text than half of it gone."""
    prose = prose_lines("\n".join(lines))
    done: list[str] = []
    ends: re.Pattern[str] | None = None  # of what began on an earlier line
    for number, (raw, outside) in enumerate(zip(lines, prose, strict=True), 1):
        if ends is not None:
            end = ends.search(raw)
            done.append(raw[end.end() :] if end else "")
            ends = None if end else ends
        elif not outside:
            done.append(raw)
        elif _MODULE.match(raw):
            ends = None if _WHOLE.search(raw) else _if_soon(_MODULE_ENDS, lines[number:])
            done.append("")
        else:
            text = _GOES.sub(lambda found: found[0] if _stays(found[0]) else "", raw)
            opened = _OPEN.search(_CODE.sub(lambda code: " " * len(code[0]), text))
            if opened:
                ends = _if_soon(_COMMENT_ENDS if opened[0].startswith("{") else _TAG_ENDS, lines[number:])
            done.append(text[: opened.start()] if opened and ends else text)
    return done


def _if_soon(ends: re.Pattern[str], lines: Sequence[str]) -> re.Pattern[str] | None:
    return ends if any(map(ends.search, lines[:_SOON])) else None


def _stays(text: str) -> bool:
    """Inline code, and a tag with a title."""
    return text.startswith("`") or (text.startswith("<") and _TITLED.search(text) is not None)
