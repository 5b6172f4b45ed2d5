"""Here is a page's HTML; give me its text as markdown: headings, paragraphs, lists, code, tables.

Conservative: what frames a page (navigation, forms, footers, scripts) is left out, of everything else the text stays.
The main part is taken where the page marks it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser

from kb.importers.form import fenced, one_line
from kb.importers.mask import tidy
from kb.text.decode import decode

__all__ = ["Page", "read_html"]

_DROPPED = frozenset(
    "script style noscript template svg math nav footer form button select textarea iframe object embed canvas audio "
    "video dialog menu".split()
)
_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())
_BLOCKS = frozenset(
    "p div section article main header aside figure figcaption address dl dt dd details summary center fieldset hgroup "
    "table thead tbody tfoot caption body html".split()
)
_MARKS = {"strong": "**", "b": "**", "code": "`", "kbd": "`", "samp": "`", "tt": "`"}
_CHARSET = re.compile(rb"<meta[^<>]{0,200}charset=[\"' ]{0,3}([\w-]{2,40})", re.IGNORECASE)
_HIDDEN = re.compile(r"display\s{0,3}:\s{0,3}none|visibility\s{0,3}:\s{0,3}hidden", re.IGNORECASE)
_LANGUAGE = re.compile(r"(?:language|lang|highlight-source)-([\w+#-]{1,20})")
_SPACE = re.compile(r"[ \t\n\r\f\v\xa0]+")


@dataclass(frozen=True, slots=True)
class Page:
    markdown: str
    title: str
    address: str
    """what the page says its own is; empty when it does not"""
    lang: str
    """"en", "zh" or empty"""


def read_html(data: bytes | str) -> Page:
    """Bytes are read as UTF-8, or in the encoding that the page declares."""
    if isinstance(data, bytes):
        declared = _CHARSET.search(data[:4096])
        data = decode(data, declared[1].decode("ascii") if declared else "")
    reader = _Reader()
    reader.feed(tidy(data).replace("\0", ""))
    reader.close()
    parts = {name: lines for name, lines in reader.parts.items() if len("".join(lines)) > 200}
    lines = max((parts[name] for name in ("article", "main") if name in parts), key=_size, default=reader.parts["page"])
    return Page("\n\n".join(lines) + "\n", one_line(reader.title, 300), reader.address, reader.lang)


def _size(lines: list[str]) -> int:
    return sum(map(len, lines))


class _Reader(HTMLParser):
    """Blocks of text go to `parts`, by the part of the page they stand in; all of them are in "page", too."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: dict[str, list[str]] = {"page": [], "article": [], "main": []}
        self.title = self.address = self.lang = ""
        self._depth = dict.fromkeys(("dropped", "article", "main", "title"), 0)
        self._stack: list[str] = []  # of dropped elements, to find each one's end
        self._text: list[str] = []
        self._heading = 0
        self._lists: list[int] = []  # the number of the next item; -1 in a list without numbers
        self._item = ""
        self._quotes = 0
        self._pre = 0
        self._language = ""
        self._row: list[str] | None = None
        self._rows = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "html":
            self.lang = {"zh": "zh", "en": "en"}.get(said.get("lang", "")[:2].lower(), "")
        elif tag in ("link", "meta"):
            self._head(tag, said)
        if tag in _VOID:
            if tag == "br" and not self._depth["dropped"]:
                self._text.append("\n" if self._pre else "\0")
            return
        hidden = "hidden" in said or said.get("aria-hidden") == "true" or _HIDDEN.search(said.get("style", "")[:500])
        if self._stack or tag in _DROPPED or (hidden and tag not in ("html", "body")):
            self._stack.append(tag)
            self._depth["dropped"] = len(self._stack)
            return
        if tag in ("article", "main", "title"):
            self._flush()
            self._depth[tag] += 1
        elif tag == "pre":
            self._flush()
            self._pre += 1
        elif self._pre:
            found = _LANGUAGE.search(said.get("class", "")[:200])
            self._language = found[1] if found else self._language
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self._flush()
            self._heading = int(tag[1])
        elif tag in ("ul", "ol"):
            self._flush()
            self._lists.append(1 if tag == "ol" else -1)
        elif tag == "li":
            self._flush()
            self._item = self._bullet()
        elif tag == "blockquote":
            self._flush()
            self._quotes += 1
        elif tag == "tr":
            self._flush()
            self._row = []
        elif tag in ("td", "th"):
            self._cell()
        elif tag in _MARKS:
            self._text.append(_MARKS[tag])
        elif tag in _BLOCKS and self._row is None:
            self._flush()

    def handle_endtag(self, tag: str) -> None:
        if self._stack:
            if tag in self._stack:
                del self._stack[len(self._stack) - 1 - self._stack[::-1].index(tag) :]
                self._depth["dropped"] = len(self._stack)
            return
        if tag in ("article", "main", "title"):
            self._flush()
            self._depth[tag] = max(0, self._depth[tag] - 1)
        elif tag == "pre":
            self._flush()
            self._pre = max(0, self._pre - 1)
            self._language = ""
        elif tag in ("h1", "h2", "h3", "h4", "h5", "h6"):
            self._flush()
            self._heading = 0
        elif tag in ("ul", "ol"):
            self._flush()
            del self._lists[-1:]
        elif tag == "li":
            self._flush()
            self._item = ""
        elif tag == "blockquote":
            self._flush()
            self._quotes = max(0, self._quotes - 1)
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            self._rows = 0
        elif tag in _MARKS and not self._pre:
            self._text.append(_MARKS[tag])
        elif tag in _BLOCKS and self._row is None:
            self._flush()

    def handle_data(self, data: str) -> None:
        if self._depth["title"] and not self._depth["dropped"]:
            self.title = (self.title + data)[:600]
        elif not self._depth["dropped"]:
            self._text.append(data)

    def close(self) -> None:
        super().close()
        self._end_row()
        self._flush()

    def _head(self, tag: str, said: dict[str, str]) -> None:
        address = said.get("href", "") if tag == "link" and said.get("rel", "").lower() == "canonical" else ""
        address = address or (said.get("content", "") if said.get("property", "").lower() == "og:url" else "")
        if not self.address and address.startswith(("https://", "http://")):
            self.address = one_line(address)

    def _bullet(self) -> str:
        indent = "   " * max(0, min(len(self._lists), 8) - 1)
        if not self._lists or self._lists[-1] < 0:
            return f"{indent}- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1] - 1}. "

    def _cell(self) -> None:
        if self._row is not None:
            text = self._taken()
            self._row += [text.replace("|", "\\|").replace("\n", " ")] if text else []

    def _end_row(self) -> None:
        if self._row is not None:
            self._cell()
            row, self._row = self._row, None
            if row:
                self._rows += 1
                line = f"| {' | '.join(row)} |"
                if self._rows == 1:
                    self._add(f"{line}\n|{' --- |' * len(row)}")
                else:
                    self._add(line, glued=True)

    def _taken(self) -> str:
        text, self._text = "".join(self._text), []
        if self._pre:
            return text.strip("\n")
        lines = [_SPACE.sub(" ", line).strip() for line in text.split("\0")]
        text = "\n".join(line for line in lines if line)
        return "" if text.strip("*` ") == "" else text

    def _flush(self) -> None:
        text = self._taken()
        if not text.strip():
            return
        if self._row is not None:
            self._text.append(text)
            return
        if self._pre:
            block = fenced(text)
            text = block.replace("\n", f"{self._language}\n", 1) if self._language else block
        elif self._heading:
            text = f"{'#' * self._heading} {_SPACE.sub(' ', text)}"
        first, rest = (self._item, " " * len(self._item)) if self._item else ("   " * len(self._lists),) * 2
        lines = text.split("\n")
        text = "\n".join((first if n == 0 else rest) + line for n, line in enumerate(lines))
        self._item = ""
        if self._quotes:
            text = "\n".join(f"> {line}" for line in text.split("\n"))
        self._add(text)

    def _add(self, text: str, *, glued: bool = False) -> None:
        for name in ("page", *(name for name in ("article", "main") if self._depth[name])):
            part = self.parts[name]
            if glued and part:
                part[-1] += f"\n{text}"
            else:
                part.append(text)
