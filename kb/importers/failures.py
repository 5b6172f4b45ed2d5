"""The lines of a post that a program printed when it failed, found in logs and in sentences.

`kb.logs` decides what a failure is. Here a message is cut out of the sentence around it, and what a person says about
the failure is told from what the program said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from kb.logs.classify import classify, is_error_line, opens_with_error
from kb.logs.errors import is_personal, quoted_errors
from kb.text import HAN_CHAR, fences

__all__ = ["failures_in", "goes_on", "marked"]

MAX_LINES = 2000  # of a post that are looked at, from its end
MAX_CHARS = 600  # of a message

_MARKUP = " \t*_>#"
# The name of an exception inside a sentence, and how far its message goes.
_INSIDE = re.compile(r"(?:\b[A-Za-z_][\w.]{0,80}(?:[Ee]rror|Exception|Interrupt)|\b[Ff]atal error|\bpanic): ?\S")
_MESSAGE_END = re.compile(
    r"(?<=[!])\s(?=[A-Z])|(?<=[^.\s])\.\s(?=[A-Z][a-z])|\?\s|[。，；！？]|\s(?:Can|How|Could|Please|Thanks|What) "
)


def failures_in(text: str, *, warnings: bool = True) -> list[str]:
    """The error lines of a post, each once, in order: those that stop a program, without markup and words around them.

    `warnings`: they count where nothing else failed.
    """
    found: list[str] = []
    warned: list[str] = []
    for line, code in _lines(text):
        if code:
            if is_error_line(line):
                (found if _fails(line) else warned).append(line.strip())
            continue
        spans = [span for span in quoted_errors(line) if is_error_line(span) and _fails(span)]
        bare = line.strip(_MARKUP)
        if spans:
            found += spans
        elif (is_error_line(bare) or _INSIDE.search(bare)) and (message := _message(bare)):
            (found if _fails(line) else warned).append(message)
    return [line[:MAX_CHARS] for line in dict.fromkeys(found or (warned if warnings else ()))]


def marked(line: str) -> str:
    """A line of prose with the message inside it as code, so that it is not taken for the message as a whole."""
    if "`" in line or not is_error_line(line):
        return line
    message = _message(line.strip(_MARKUP))
    if not message or message == line.strip(_MARKUP) or message not in line:
        return line
    return line.replace(message, f"`{message}`", 1)


def _message(line: str) -> str:
    """The message in a line of prose; "" when a person wrote all of it."""
    inside = None if opens_with_error(line) else _INSIDE.search(line)
    start = inside.start() if inside else 0
    message = _without_words(line[start:]).strip(' \t"“”')
    whole_is_prose = not inside and HAN_CHAR.match(message)
    sentence = not inside and not opens_with_error(line) and message.endswith((".", "。"))
    return "" if whole_is_prose or sentence or is_personal(message) else message


def _without_words(message: str) -> str:
    """A message at the beginning of a line, up to where a person goes on."""
    end = _MESSAGE_END.search(message)
    return message[: end.start()] if end and is_personal(message[end.start() :]) else message


def goes_on(line: str) -> bool:
    """A printed line of a level below an error, or a warning."""
    return is_error_line(line) and not _fails(line)


def _fails(line: str) -> bool:
    """Not a line whose level says that the program goes on, and no warning."""
    return classify(line) not in ("warning", "healthy") and classify(line, picked=True) != "warning"


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    lines: Iterable[tuple[str, bool]] = [
        (line, isinstance(block, fences.Code) or line.startswith("    "))
        for block in fences.split(text)
        for line in (block.inside if isinstance(block, fences.Code) else block.lines)
    ]
    return iter(list(lines)[-MAX_LINES:])
