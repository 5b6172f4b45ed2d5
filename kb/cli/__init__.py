"""The command line: `kb` and its commands. Answers go to stdout, messages to stderr, and the exit code says which.

Each command has a module of its name (`import` is in `imports`), which is imported only when the command runs.

    meant     what is meant where no command is named
    common    options that several commands share, opening the base, reading and writing
    render    results at a terminal: colour and layout
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from importlib import import_module
from typing import Any, NoReturn

import click

import kb
from kb.cli.common import complain, echo, warn_on_stderr
from kb.cli.words import chinese, language, say, speak, told
from kb.errors import IndexWriteFailed, KbError

__all__ = ["cli", "main"]

_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


# In the order in which people need them: the command, and its module and name in this package.
_COMMANDS = {
    "search": "search.search",
    "scan": "scan.scan",
    "run": "run.run",
    "last": "last.last",
    "show": "show.show",
    "projects": "projects.projects",
    "info": "info.info",
    "build": "build.build",
    "trust": "trust.trust",
    "parse": "parse.parse",
    "new": "new.new",
    "check": "check.check",
    "eval": "eval.evaluate",
    "serve": "serve.serve",
    "import": "imports.imports",
    "review": "review.review",
    "feedback": "feedback.feedback",
    "gaps": "gaps.gaps",
    "mcp": "mcp.mcp",
    "hook": "hook.hook",
    "completion": "completion.completion",
}


class _Group(click.Group):
    """Imports a command's module when the command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[name].rpartition(".")
        command: click.Command = getattr(import_module(f"kb.cli.{module}"), attribute)
        if name == "trust":
            _read_settings_quietly()
        line = chinese()["help"].get(name) if language() == "zh" else None
        if line is None:
            return command
        from copy import copy

        command = copy(command)
        command.short_help, command.help = line, f"{line}\n\n{command.help}"
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """`... | kb` searches what comes, and `kb --json "the error"` is a search, too."""
        if not ctx.resilient_parsing and self._searches(args):
            args = ["search", *args]
        return super().parse_args(ctx, args)

    def _searches(self, args: list[str]) -> bool:
        from kb.cli import meant

        if not args:
            return meant.has_piped_input()
        if not args[0].startswith("-") or args[0] == "-" or _COMMANDS.keys() & {*args}:
            return False
        context = click.Context(self, help_option_names=["-h", "--help"])
        search = self.get_command(context, "search")
        if search is None or meant.is_option(args[0], self, context):
            return False
        return meant.is_option(args[0], search, context)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """What is no command is a question, or told what it may have been."""
        if args[0] in _COMMANDS or ctx.resilient_parsing:
            return super().resolve_command(ctx, args)
        from kb.cli.meant import is_question, no_command

        if not is_question(args, [*_COMMANDS]):
            raise no_command(args, [*_COMMANDS])
        return super().resolve_command(ctx, ["search", *args])

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        with _written():  # --help and --version
            return super().make_context(*args, **more)

    def invoke(self, ctx: click.Context) -> Any:
        with _written():
            return super().invoke(ctx)


@contextlib.contextmanager
def _written() -> Iterator[None]:
    """A failed write has exit codes of its own; click and Python would exit with 1 or 120."""
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except BrokenPipeError:  # a reader that leaves early (`| head -1`) is no error
        _discard_stdout()
        sys.exit(_EXIT_BROKEN_PIPE)
    except OSError as error:
        if error.filename is not None:  # stdout has no name
            raise KbError(f"{error.strerror or error}", path=str(error.filename)) from None
        _discard_stdout()
        raise IndexWriteFailed(f"stdout: the answer could not be written ({error.strerror or error})") from None


def _read_settings_quietly() -> None:
    """`kb trust` need not be told that the settings here do not count until `kb trust`."""
    import logging

    logger = logging.getLogger("kb")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        language()
    finally:
        logger.setLevel(before)


def _discard_stdout() -> None:
    """Redirects stdout to the null device, so that the flush at the interpreter's end does not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 known or done, 1 likely or unknown, 2 wrong usage, 64 bad question, 65 bad article or index, "
    "66 not found, 69 encoder or extra missing, 74 cannot write, 75 another build is running, 78 kb.toml is wrong.",
)
@click.version_option(kb.__version__, "-V", "--version", prog_name="kb")
def cli() -> None:
    """Paste an error, a log or a description, in English or Chinese; get the known issue, its cause and its fix.

    粘贴报错、日志或一句描述（中英文皆可），得到已知问题、原因和解决办法。全程离线。

    \b
      kb "IndexError: pop from an empty deque"
      python train.py 2>&1 | tail -n 100 | kb
      kb train.log
      kb search 断点续训从第 0 步开始
    """
    speak(None)


def main() -> NoReturn:
    """The console script: errors become a message and the exit code of their class."""
    gc.disable()  # saves time in a process of 0.2 s; `build` and a batch switch it on again
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # with LC_ALL=C or a Windows code page, characters that cannot be written are shown as escapes
            reconfigure(encoding="utf-8", errors="backslashreplace")
    warn_on_stderr()
    try:
        cli(prog_name="kb", standalone_mode=False)
    except click.UsageError as error:
        context = error.ctx
        if type(error).__name__ == "NoArgsIsHelpError":  # `kb` alone; click before 8.2 has no such error
            echo(error.format_message(), err=True)
            sys.exit(error.exit_code)
        if context is not None:
            echo(context.get_usage().replace("Usage: ", say("Usage: "), 1), err=True)
            echo(say("Try '{command} --help' for help.", command=context.command_path) + "\n", err=True)
        echo(say("Error: {message}", message=told(error.format_message())), err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        echo(say("Error: {message}", message=told(error.format_message())), err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # click's own exit code for this is 1, which says "no known issue" here
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends already
        complain(say("interrupted"))
        sys.exit(_EXIT_INTERRUPTED)
    except KbError as error:
        complain(error)
        sys.exit(error.exit_code)
    except Exception as error:  # Python would exit with 1, which says "no known issue"
        if os.environ.get("KB_DEBUG"):
            raise
        complain(
            KbError(
                f"this is a bug in kb: {type(error).__name__}: {error}",
                hint="KB_DEBUG=1 shows where; please report it",
            )
        )
        sys.exit(KbError.exit_code)
    sys.exit(0)
