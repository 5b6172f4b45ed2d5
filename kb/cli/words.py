"""The messages of the command line in both languages.

The code says them in English: `say("{n} new, {old} removed", n=3, old=1)`; zh.json has the Chinese of each under
`said`. What other rooms say in English (errors, hints, warnings, click's own messages) is recognised by what stands
under `heard`, and `told` gives the Chinese; a message that is not there stays English. `help` has a line for
each command. JSON, exit codes and the first words that programs look for never change.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["chinese", "language", "say", "speak", "told"]

_MAX_CHARS = 2000
_WITHIN = frozenset({"error", "guess", "state", "problem", "own", "others"})  # what a message repeats of another one

_chosen: Lang | None = None
_asking = False


@cache
def chinese() -> dict[str, dict[str, str]]:
    """English -> Chinese, of what the commands say (`said`) and hear from others (`heard`); `help` by command."""
    table: dict[str, dict[str, str]] = json.loads(Path(__file__).with_name("zh.json").read_text("utf-8"))
    return table


def speak(lang: Lang | None) -> None:
    """From now on in this language (`--lang`); None: in the reader's, as `kb.language` finds it."""
    global _chosen
    _chosen = lang


def language() -> Lang | None:
    """The reader's; None when nobody said."""
    from kb.language import reader_language

    global _asking
    if _asking:  # a warning that comes up while the settings are read
        return _chosen
    _asking = True
    try:
        return reader_language(_chosen)
    finally:
        _asking = False


def say(english: str, **values: object) -> str:
    """A message of this table in the reader's language."""
    text = chinese()["said"].get(english, english) if language() == "zh" else english
    return text.format(**values)


def told(english: str) -> str:
    """A message made elsewhere, in the reader's language; as it is when the table does not know it."""
    return _in_chinese(english) if language() == "zh" else english


def _in_chinese(english: str) -> str:
    if english in chinese()["heard"]:
        return chinese()["heard"][english]
    if len(english) > _MAX_CHARS:
        return english
    for pattern, template in _patterns():
        if found := pattern.fullmatch(english):
            values = found.groupdict()
            return template.format(**{k: _in_chinese(v) if k in _WITHIN else v for k, v in values.items()})
    return english


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """What has values in it; what begins with words of its own comes first, then what has more of them."""
    heard = chinese()["heard"]
    templates = sorted((one for one in heard if "{" in one), key=_own_words)
    return [(_pattern(template), heard[template]) for template in templates]


def _own_words(template: str) -> tuple[bool, int]:
    return template.startswith("{"), -len(re.sub(r"\{\w+\}", "", template))


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    named = (f"(?P<{part}>.+?)" if n % 2 else re.escape(part) for n, part in enumerate(parts))
    return re.compile("".join(named), re.DOTALL)
