"""The IPython extension: `%load_ext kb` adds `%kb`, `%%kb` and a hint below a failed cell.

    %kb pop from an empty deque     the known issue, as `kb search` shows it
    %kb                             the same for the last exception
    %%kb                            and for a log pasted below

IPython prints its own traceback first, unchanged.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from kb.hooks.guard import Guard, note
from kb.hooks.hint import hint, is_failure, question

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

__all__ = ["load_ipython_extension", "unload_ipython_extension"]

_guard = Guard()


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%load_ext kb`."""
    from IPython.core.magic import no_var_expand

    unexpanded: Any = no_var_expand  # a `{` in an error message is not a variable; typed for methods only
    shell.register_magic_function(unexpanded(_magic), "line_cell", "kb")
    shell.events.register("post_run_cell", _after_cell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Called by `%unload_ext kb`."""
    shell.events.unregister("post_run_cell", _after_cell)
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("kb", None)


def _magic(line: str, cell: str | None = None) -> None:
    """The known issue behind an error line, a pasted log, or (with nothing) the last exception."""
    from kb.bases import open_bases
    from kb.cli.render import Screen
    from kb.errors import KbError
    from kb.language import reader_language

    text = "\n".join(part for part in (line, cell) if part and part.strip())
    last = getattr(sys, "last_value", None)
    if not text and last is not None:
        text = question(last)
    try:
        with open_bases() as base:
            lang = reader_language()
            found = base.search(text, lang=lang)
            Screen(colour=False).result(found, size=base.size, where=base.where, bundled=base.bundled, lang=lang)
    except KbError as error:
        _say("\n    ".join(part for part in (f"kb: {error}", error.hint) if part))


def _after_cell(result: ExecutionResult) -> None:
    try:
        error: Any = result.error_in_exec
        if is_failure(error):
            found = hint(_guard.ask_in_time(lambda: question(error)))
            if found:
                _say(found.text)
    except Exception as wrong:
        note("no hint", wrong)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
