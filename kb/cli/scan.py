"""`kb scan`: lists the issues in logs, known or likely, or in one log while it is written."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from kb.cli.common import (
    base_option,
    complain,
    counted,
    echo,
    index_option,
    is_terminal,
    json_option,
    lang_option,
    note_silent,
    open_base,
    plain,
    print_json,
    screen,
)
from kb.cli.complete import complete_project
from kb.cli.words import language, say
from kb.errors import KbError, QueryError
from kb.logs.unpack import CHUNK, chunks_of

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.records import Lang
    from kb.scan import Finding, Scanner, ScanReport

__all__ = ["chunks", "scan"]

_EXIT_UNKNOWN, _EXIT_UNREADABLE, _EXIT_INTERRUPTED = 1, 65, 130
_LARGE = 20 << 20  # bytes from which a log gets a progress bar
_POLL_S, _QUIET_S = 0.25, 1.0  # of a followed log: how often to look, and when it counts as quiet


def _number(context: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and value != value:  # NaN, which passes the range check of click
        raise click.BadParameter("not a number", context, option)
    return value


@click.command()
@click.argument(
    "logs", metavar="LOG...", nargs=-1, type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False)
)
@lang_option
@click.option(
    "--project", shell_complete=complete_project, help="Only issues of this project (`kb projects` lists them) or tag."
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    metavar="P",
    callback=_number,
    help="Leave out issues with a lower confidence.",
)
@click.option("--warnings", is_flag=True, help="Also report warnings; a healthy log may have many.")
@click.option("-f", "--follow", is_flag=True, help="Keep reading while the log is written, until Ctrl-C.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; only the exit code counts.")
@json_option
@base_option
@index_option
def scan(
    logs: tuple[Path, ...],
    lang: Lang | None,
    project: str | None,
    min_confidence: float | None,
    warnings: bool,
    follow: bool,
    quiet: bool,
    as_json: bool,
    bases: tuple[str, ...],
    index: str | Path | None,
) -> None:
    """List every issue that occurs in LOG, known or likely, with its lines. "-" (or a pipe) reads stdin. What is
    packed with gzip is unpacked.

    \b
      kb scan train.log
      kb scan node*/rank*.log.gz
      kb scan -f train.log
      kubectl logs job/train | kb scan --json - | jq '.logs[].findings[].issue'

    Exits with 0 when it found a known issue, with 1 when it found none, and with 65 when it found none and a log is
    damaged. The part before the damage is scanned; after Ctrl-C, what was found until then is printed.
    """
    if not logs:
        if sys.stdin is None or is_terminal(sys.stdin):
            raise click.UsageError("no log given: kb scan train.log, or pipe one into it")
        logs = (Path("-"),)
    if sys.stdin is None and Path("-") in logs:
        raise QueryError("stdin: cannot be read (it is closed)")
    if follow and (len(logs) > 1 or logs[0] == Path("-") or logs[0].suffix == ".gz"):
        raise click.UsageError("--follow takes one plain file")
    with open_base(index, bases) as base:
        lang = language()
        note_silent(getattr(base, "silent", ()))
        if project is not None:
            base.search("error", 1, project=project)  # raises for a project without issues
        from kb.scan import Scans

        output = _Output(base, as_json=as_json, quiet=quiet, least=min_confidence or 0.0)
        for path in logs:
            if follow:
                _follow(path, lambda: base.scanners(project), {"lang": lang, "warnings": warnings}, output)
                continue
            one = Scans(base.scanners(project), lang=lang, warnings=warnings)
            try:
                for chunk in chunks(path, progress=not quiet):
                    with _whole():
                        one.feed(chunk)
            except QueryError as error:
                output.log(str(path), one.finish(), damage=error)
            except KeyboardInterrupt:
                output.log(str(path), one.finish(), damage=KbError("interrupted; the rest is not read", path=path))
                output.end()
                sys.exit(_EXIT_INTERRUPTED)
            else:
                output.log(str(path), one.finish())
    output.end()
    sys.exit(0 if output.known else _EXIT_UNREADABLE if output.damaged else _EXIT_UNKNOWN)


_SUMMARIES = {  # are some only likely, and is the log damaged?
    (False, False): "{known} in {lines} of {log}.",
    (True, False): "{known}, {likely}, in {lines} of {log}.",
    (False, True): "{known} in the first {lines} of {log}.",
    (True, True): "{known}, {likely}, in the first {lines} of {log}.",
}


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Ctrl-C comes when the work in here is done, so that its result can be used; a second one comes at once."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    came: list[int] = []

    def note(*_: object) -> None:
        if came:
            raise KeyboardInterrupt
        came.append(1)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if came:
        raise KeyboardInterrupt


class _Output:
    """Prints the findings: of each log when it was read, or of a followed log as they are found."""

    def __init__(self, base: AnyBase, *, as_json: bool, quiet: bool, least: float) -> None:
        self._base = base
        self._json, self._quiet, self._least = as_json, quiet, least
        self._logs: list[dict[str, Any]] = []
        self._printed: set[str] = set()
        self.found = self.known = self.damaged = 0

    def restart(self, log: str) -> None:
        """The followed file was replaced or cut off: its findings count anew."""
        self._printed.clear()
        complain(say("{log} was made anew; reading it from its first line", log=plain(log)))

    def add(self, log: str, findings: tuple[Finding, ...]) -> None:
        """The findings so far of a followed log; prints each issue once."""
        for finding in findings:
            if finding.issue in self._printed or finding.confidence < self._least:
                continue
            self._printed.add(finding.issue)
            self.found += 1
            self.known += finding.verdict == "known"
            if self._quiet:
                continue
            if self._json:
                print_json({"log": log, **finding.as_dict()}, indent=None)
            else:
                screen().finding(finding, log)
                echo()

    def log(self, log: str, report: ScanReport, *, damage: KbError | None = None) -> None:
        """Prints one log. `damage`: why it could not be read to its end."""
        report = report.at_least(self._least)
        findings = report.findings
        known = sum(finding.verdict == "known" for finding in findings)
        self.found += len(findings)
        self.known += known
        form = report.as_dict()
        if damage:
            self.damaged += 1
            form["damage"] = damage.message
            complain(damage)
        self._logs.append({"log": log, **form})
        if self._quiet or self._json:
            return
        terminal = screen()
        for finding in findings:
            terminal.finding(finding, log)
            echo()
        summary = say(
            _SUMMARIES[known < len(findings), damage is not None],
            known=counted(known, "known issue") if known else say("No known issue"),
            likely=counted(len(findings) - known, "likely one"),
            lines=counted(report.lines, "line"),
            log=log,
        )
        terminal.say(summary, "" if findings else "bold yellow")

    def end(self) -> None:
        if self._json and not self._quiet and self._logs:
            print_json({"base": self._base.name, "found": self.found, "logs": self._logs})
        elif not self._quiet and not self._json and not self._base.bundled:
            screen().searched(language() or "en", size=self._base.size, where=self._base.where)


def chunks(path: Path, *, progress: bool) -> Iterator[bytes]:
    """The bytes of a log, with a progress bar on stderr for a large one at a terminal.

    Raises as `kb.logs.unpack.chunks_of` does.
    """
    if path == Path("-"):
        yield from chunks_of(cast(BufferedReader, sys.stdin.buffer), "stdin")
        return
    with path.open("rb") as raw:
        size = os.fstat(raw.fileno()).st_size
        if not progress or size < _LARGE or not is_terminal(sys.stderr):
            yield from chunks_of(raw, str(path))
            return
        with click.progressbar(length=size, file=sys.stderr, label=plain(path.name)) as bar:
            at = 0
            for chunk in chunks_of(raw, str(path)):
                yield chunk
                bar.update(raw.tell() - at)
                at = raw.tell()


def _follow(path: Path, newest: Callable[[], tuple[Scanner, ...]], options: dict[str, Any], output: _Output) -> None:
    """Reads until Ctrl-C. A file that was replaced or cut off is read from its start. `newest` gives the scanners of
    the newest snapshots: what is built meanwhile is found from then on."""
    from kb.scan import Scans

    log, scanners = str(path), newest()
    one = Scans(scanners, **options)
    raw: BinaryIO = path.open("rb")
    silence = 0.0
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            if chunk := raw.read(CHUNK):
                one.feed(chunk)
                silence = 0.0
            else:
                time.sleep(_POLL_S)
                silence += _POLL_S
                if (newer := newest()) != scanners:
                    scanners = newer
                    one.move_to(scanners)
                if _is_another(path, raw):
                    for chunk in iter(lambda: raw.read(CHUNK), b""):  # noqa: B023  the rest of the old file
                        one.feed(chunk)
                    output.add(log, one.finish().findings)
                    raw.close()
                    raw = path.open("rb")
                    one = Scans(scanners, **options)
                    output.restart(log)
            if silence >= _QUIET_S:
                one.settle()
            output.add(log, one.findings)
    output.add(log, one.finish().findings)
    raw.close()


def _is_another(path: Path, opened: BinaryIO) -> bool:
    """Is `path` no longer the file that was opened, or shorter than what was read?"""
    try:
        now, own = path.stat(), os.fstat(opened.fileno())
    except OSError:  # between a move and a new file, there is no file
        return False
    return now.st_ino != own.st_ino or now.st_size < opened.tell()
