"""Here is what somebody typed; do it, and say how it went: on stdout the answer, on stderr what went wrong, and an exit
code.

What a command needs is imported when it runs: `kb --help` and a search pay for nothing else.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

import kb
from kb.cli.common import complain, echo
from kb.errors import IndexWriteFailed, KbError

__all__ = ["cli", "main"]

_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


# In the order in which people need them: the command, and its module and name in this package.
_COMMANDS = {
    "search": "search.search",
    "scan": "scan.scan",
    "run": "run.run",
    "show": "show.show",
    "projects": "projects.projects",
    "build": "build.build",
    "trust": "trust.trust",
    "parse": "parse.parse",
    "new": "new.new",
    "check": "check.check",
    "eval": "eval.evaluate",
    "serve": "serve.serve",
    "import": "imports.imports",
    "mcp": "mcp.mcp",
    "completion": "completion.completion",
}


class _Group(click.Group):
    """Imports the module of the command that is asked for, and no other."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].rpartition(".")
        command: click.Command = getattr(import_module(f"kb.cli.{module}"), attribute)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """What cannot be written ends with a code of its own; click and Python would exit with 1 or 120."""
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except BrokenPipeError:  # a reader that leaves early (`| head -1`) is no error
            _discard_stdout()
            sys.exit(_EXIT_BROKEN_PIPE)
        except OSError as error:
            _discard_stdout()
            raise IndexWriteFailed(f"stdout: the answer could not be written ({error.strerror or error})") from None


def _discard_stdout() -> None:
    """Gives the flush at the interpreter's end somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 answered or done, 1 no known issue, 2 wrong usage, 64 bad question, 65 bad article or index, "
    "66 nothing there, 69 encoder missing, 74 cannot write, 75 another build is running.",
)
@click.version_option(kb.__version__, "-V", "--version", prog_name="kb")
def cli() -> None:
    """Paste an error, a log or a description, in English or Chinese; get the known issue, its cause and its fix.

    粘贴报错、日志或一句描述（中英文皆可），得到已知问题、原因和解决办法。全程离线。

    \b
      kb search "IndexError: pop from an empty deque"
      python train.py 2>&1 | tail -n 100 | kb search -
      kb search 断点续训从第 0 步开始
    """


def main() -> NoReturn:
    """The console script: errors become a message and the exit code of their class."""
    gc.disable()  # a process of a fifth of a second has nothing to collect; `build` and a batch switch it on again
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # LC_ALL=C, or a Windows code page: what cannot be written is shown as an escape
            reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        cli(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.UsageError as error:
        context = error.ctx
        if context is not None:
            echo(context.get_usage() + f"\nTry '{context.command_path} --help' for help.\n", err=True)
        echo(f"Error: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        echo(f"Error: {error.format_message()}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # click's own exit code for this is 1, which says "no known issue" here
        echo("kb: interrupted", err=True)
        sys.exit(_EXIT_INTERRUPTED)
    except KbError as error:
        complain(error)
        sys.exit(error.exit_code)
    except Exception as error:  # Python would exit with 1, which says "no known issue"
        if os.environ.get("KB_DEBUG"):
            raise
        complain(
            KbError(
                f"this is a mistake in kb, not yours: {type(error).__name__}: {error}",
                hint="KB_DEBUG=1 shows where; please report it",
            )
        )
        sys.exit(KbError.exit_code)
    sys.exit(0)
