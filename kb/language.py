"""In which language a reader is told: `--lang`, else KB_LANG, else the settings, else the locale, else nobody said.

Doors that print for a person ask here: the command line, `kb run`, the hooks, the magic of IPython. What programs call
(Python, HTTP, MCP) goes by its own `lang` alone, so that an answer does not depend on who started the process. None
means that nobody said: then the language of the question decides.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kb.errors import KbError

if TYPE_CHECKING:
    from kb.records import Lang

__all__ = ["LOCALE", "VARIABLE", "reader_language"]

VARIABLE = "KB_LANG"
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
"""the first one that is set decides, as in POSIX"""


def reader_language(explicit: Lang | None = None) -> Lang | None:
    """The language of whoever reads. A locale can say Chinese, but never English: servers have an English one whoever
    works there. A value of KB_LANG that is no language of kb is logged as a warning and passed over."""
    if explicit is not None:
        return explicit
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        lang = _language(named)
        if lang is not None:
            return lang
        _warn(named[:40])
    chosen = _configured()
    if chosen is not None:
        return chosen
    locale = next(filter(None, map(os.environ.get, LOCALE)), "")
    return "zh" if _language(locale) == "zh" else None


_warned: set[str] = set()


def _warn(named: str) -> None:
    """Once. Whoever prints the warning may ask for the language again."""
    if named not in _warned:
        _warned.add(named)
        import logging  # late: a start has no use for it

        logging.getLogger("kb").warning("%s is %r; it can be en or zh 只能是 en 或 zh", VARIABLE, named)


def _language(name: str) -> Lang | None:
    """Of `zh`, `zh_CN.UTF-8`, `zh-Hans`, `EN` and the like."""
    word = name.casefold().replace("-", "_").replace(".", "_").partition("_")[0]
    return "zh" if word == "zh" else "en" if word == "en" else None


def _configured() -> Lang | None:
    from kb.config import settings

    try:
        lang: Lang | None = settings().lang
    except KbError:  # whoever opens a base is told what is wrong in kb.toml
        return None
    return lang
