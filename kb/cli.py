"""Here is what somebody typed; do it, and say how it went: on stdout the answer, on stderr what went wrong, and an exit
code.

Everything a command needs is imported when it runs: `kb --help` and a search pay for nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TextIO

import click

import kb
from kb.errors import ArticleError, IndexMissing, KbError, QueryError

if TYPE_CHECKING:
    from kb.records import Lang
    from kb.render import Screen
    from kb.search import KnowledgeBase

__all__ = ["main"]

_EXIT_UNKNOWN = 1
_EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_MAX_STDIN = 100 << 20  # bytes of a pasted log that are read; the question keeps its ends


class _Group(click.Group):
    """Lists commands in the order in which people need them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


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


_index_option = click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="Folder of the index. Default: $KB_INDEX, else the index/ or articles/ at or above this folder, else the base "
    "that travels with kb.",
)
_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@cli.command()
@click.argument("text", nargs=-1)
@click.option("-k", type=click.IntRange(1, 100), default=5, show_default=True, help="How many issues to list.")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Search and show articles in this language only.")
@click.option("--project", help="Search this project only (`kb projects` lists them).")
@click.option(
    "--batch",
    type=click.File("r", encoding="utf-8-sig", errors="replace"),
    help='File of {"id": ..., "query": ...} lines; "-" for stdin.',
)
@_json_option
@_index_option
def search(
    text: tuple[str, ...],
    k: int,
    lang: Lang | None,
    project: str | None,
    batch: TextIO | None,
    as_json: bool,
    index: Path | None,
) -> None:
    """Find the known issue for TEXT: an error line, a whole log, or a description. "-" (or a pipe) reads stdin.

    \b
      kb search "pop from an empty deque"
      kb search - < train.log
      kb search --json -k 3 "loss 变成 nan" | jq .answered
      kb search --batch questions.jsonl > answers.jsonl

    Exits with 0 when a known issue answers, with 1 when none does: then the nearest are listed, and may be wrong.
    """
    if batch is not None and text:
        raise click.UsageError("give TEXT or --batch, not both")
    question = "" if batch is not None else _question(text)
    with _open(index) as base:
        if batch is not None:
            sys.exit(_search_batch(base, batch, k=k, lang=lang, project=project))
        result = base.search(question, k, lang=lang, project=project)
    if as_json:
        _print_json({"id": None, **result.as_dict()})
    else:
        _screen().result(result)
    sys.exit(0 if result.answered else _EXIT_UNKNOWN)


def _question(text: tuple[str, ...]) -> str:
    if text and text != ("-",):
        return " ".join(text)
    if not text and sys.stdin.isatty():
        raise click.UsageError('what is the question? kb search "the error message", or pipe a log into it')
    return _read_stdin().decode("utf-8", "replace")


def _read_stdin() -> bytes:
    """At most the first and the last 50 MB of stdin."""
    data = sys.stdin.buffer.read(_MAX_STDIN // 2)
    tail = b""
    while chunk := sys.stdin.buffer.read(1 << 20):
        tail = (tail + chunk)[-_MAX_STDIN // 2 :] if len(tail) > _MAX_STDIN // 2 else tail + chunk
    return data + tail


def _search_batch(base: KnowledgeBase, lines: TextIO, *, k: int, lang: Lang | None, project: str | None) -> int:
    """One answer a question, in order; a line that is no question gets an answer that says so, and 64 in the end."""
    exit_code = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        name: Any = None
        try:
            item = json.loads(line)
            name = item.get("id") if isinstance(item, dict) else None
            if not isinstance(item, dict) or not isinstance(item.get("query"), str):
                raise QueryError('each line is an object with "id" and "query"')
            answer = base.search(item["query"], k, lang=lang, project=project).as_dict()
        except (QueryError, ValueError, RecursionError) as error:
            message = f"line {number}: {error}"
            answer = {"query": None, "answered": False, "results": [], "error": message}
            click.echo(f"kb: {message}", err=True)
            exit_code = QueryError.exit_code
        _print_json({"id": name, **answer}, indent=None)
    return exit_code


@cli.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder.",
)
@click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="Where the index goes. Default: $KB_INDEX, else index/ beside the articles.",
)
@click.option(
    "--encoder",
    help="A sentence-transformers model by name or folder (needs kb-issues[transformers]). Default: kb's own.",
)
@click.option("--keep-going", is_flag=True, help="Leave out articles that cannot be read, instead of stopping.")
@_json_option
def build(articles: Path | None, index: Path | None, encoder: str | None, keep_going: bool, as_json: bool) -> None:
    """Make or renew the index of a folder of articles. Unchanged articles are neither parsed nor encoded again.

    \b
      kb build                                    articles/ here or above, into index/ beside it
      kb build --articles notes --index notes.kb
      kb build --encoder BAAI/bge-m3              any sentence-transformers model
    """
    from kb.build import BuildFailed
    from kb.build import build as build_index
    from kb.locate import mark, stamp

    articles = articles or _own_articles()
    named = os.environ.get("KB_INDEX")
    target = index or (Path(named) if named else articles.resolve().parent / "index")
    found = stamp(articles)  # before the build: what is written to meanwhile is newer than the index
    try:
        with _Progress(sys.stderr.isatty()) as progress:
            report = build_index(articles, target, encoder=encoder, keep_going=keep_going, progress=progress)
    except BuildFailed as failed:
        for error in failed.bad:
            _complain(error)
        raise
    mark(target, found)
    for error in report.bad:
        _complain(error)
    for skipped in report.skipped:
        click.echo(f"kb: skipped {_plain(skipped.path)}: {skipped.reason}", err=True)
    for path in report.without_records:
        click.echo(f"kb: no issue found in {_plain(path)}; see `kb parse --explain`", err=True)
    if as_json:
        _print_json(
            {
                "snapshot": report.snapshot,
                "articles": report.articles,
                "issues": report.issues,
                "records": report.records,
                "parsed": report.parsed,
                "removed": report.removed,
                "bad": [str(error) for error in report.bad],
                "skipped": [{"path": s.path, "reason": s.reason} for s in report.skipped],
                "without_records": list(report.without_records),
                "took_s": round(report.took_s, 3),
            }
        )
        return
    click.echo(
        f"{report.articles} article{'s' * (report.articles != 1)} ({report.parsed} new or changed, {report.removed} removed), "
        f"{report.issues} issues, "
        f"{report.records} records in {report.took_s:.2f} s -> {_plain(str(target))} [{report.snapshot}]"
    )


class _Progress:
    """A bar on stderr when somebody is watching and the work is long enough to wonder."""

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._bar: Any = None
        self._task: dict[str, Any] = {}

    def __enter__(self) -> _Progress:
        return self

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not self._shown or total < 200:
            return
        if self._bar is None:
            from rich.console import Console
            from rich.progress import Progress

            self._bar = Progress(console=Console(stderr=True), transient=True)
            self._bar.start()
        if stage not in self._task:
            self._task[stage] = self._bar.add_task(stage, total=total)
        self._bar.update(self._task[stage], completed=done)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


@cli.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--explain", is_flag=True, help="Also list every place that is in no record, and why.")
@_json_option
def parse(path: Path, explain: bool, as_json: bool) -> None:
    """Show the issues found in the article PATH ("-" for stdin), without touching any index.

    \b
      kb parse articles/en/foo.md
      kb parse scraped.txt --json
      kb parse scraped.txt --explain
    """
    from kb.articles import parse as parse_article
    from kb.build import read_article

    if str(path) == "-":
        article = parse_article(sys.stdin.buffer.read(_MAX_STDIN), path="stdin.md")
    else:
        folder = path.absolute().parent
        inside = f"{folder.name}/{path.name}" if folder.name in ("en", "zh") else path.name
        root = folder.parent if folder.name in ("en", "zh") else folder
        article = parse_article(read_article(root, inside), path=inside)
    if as_json and explain:
        remarks = [{"line": r.line, "kind": r.kind, "text": r.text} for r in article.remarks]
        _print_json({"records": [record.as_dict() for record in article.records], "remarks": remarks})
    elif as_json:
        _print_json([record.as_dict() for record in article.records])
    else:
        _screen().article(article, explain=explain)


@cli.command()
@click.argument("issue")
@click.option("--lang", type=click.Choice(["en", "zh"]), help="Only this telling.")
@_json_option
@_index_option
def show(issue: str, lang: Lang | None, as_json: bool, index: Path | None) -> None:
    """Show the whole of ISSUE: `slug#n`, `slug#n/zh` for one telling, or a slug for all issues of an article."""
    with _open(index) as base:
        records = [record for record in base.show(issue) if lang in (None, record.lang)]
    if not records:
        raise IndexMissing(f"{issue} is not told in {lang}")
    if as_json:
        _print_json([record.as_dict() for record in records])
        return
    screen = _screen()
    for number, record in enumerate(records):
        if number:
            click.echo()
        screen.record(record)


@cli.command()
@_json_option
@_index_option
def projects(as_json: bool, index: Path | None) -> None:
    """List the projects that the base knows issues of, and how many."""
    with _open(index) as base:
        found = base.projects()
    if as_json:
        _print_json([{"project": project, "issues": count} for project, count in found])
    else:
        for project, count in found:
            click.echo(f"{count:5d}  {_plain(project)}")


@cli.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder.",
)
@_json_option
@_index_option
def check(articles: Path | None, as_json: bool, index: Path | None) -> None:
    """Find what a reviewer of the articles, and a fsck of the index, would send back. Changes nothing.

    Prints `path:line: error|warning: what` and exits with 65 when there is an error.
    """
    from kb.check import check_articles, check_index
    from kb.locate import locate, own_articles

    folder = articles or (None if index else own_articles())
    findings = check_articles(folder) if folder else []
    place = locate(index)
    if index or not place.kept_fresh:
        findings += check_index(place.index, folder or place.articles)
    elif folder is None:
        raise IndexMissing(
            "there are no articles and no index here", path=Path.cwd(), hint="--articles DIR or --index DIR"
        )
    if as_json:
        _print_json([{"path": f.path, "line": f.line, "level": f.level, "message": f.message} for f in findings])
    else:
        for f in findings:
            where = _plain(f.path) + (f":{f.line}" if f.line else "")
            click.echo(f"{where}: {f.level}: {_plain(f.message)}")
    errors = sum(f.level == "error" for f in findings)
    click.echo(f"{errors} errors, {len(findings) - errors} warnings", err=True)
    sys.exit(ArticleError.exit_code if errors else 0)


@cli.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print the completion script for SHELL.

    \b
      bash:  kb completion bash > ~/.local/share/bash-completion/completions/kb
      zsh:   kb completion zsh > "${fpath[1]}/_kb"
      fish:  kb completion fish > ~/.config/fish/completions/kb.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(cli, {}, "kb", "_KB_COMPLETE").source())


def _open(index: Path | None) -> KnowledgeBase:
    from kb.search import KnowledgeBase

    return KnowledgeBase.open(index)


def _own_articles() -> Path:
    from kb.locate import own_articles

    found = own_articles()
    if found is None:
        raise IndexMissing("no articles/ at or above this folder", path=Path.cwd(), hint="kb build --articles DIR")
    return found


def _screen() -> Screen:
    from kb.render import Screen

    return Screen(colour=sys.stdout.isatty() and os.environ.get("TERM") != "dumb")


def _print_json(value: Any, indent: int | None = 1) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    # Surrogates (bytes of an argument that are no UTF-8) cannot be written; JSON has an escape for them.
    sys.stdout.write("".join(f"\\u{ord(c):04x}" if "\ud800" <= c <= "\udfff" else c for c in text) + "\n")
    sys.stdout.flush()  # who reads the answers of a batch may be waiting for this one


def _plain(text: str) -> str:
    from kb.render import visible

    return visible(text)


def _complain(error: KbError) -> None:
    click.echo(f"kb: {_plain(str(error))}", err=True)
    if error.hint:
        click.echo(f"    {_plain(error.hint)}", err=True)


def _streams() -> Iterator[TextIO]:
    yield from (sys.stdout, sys.stderr)


def main() -> NoReturn:
    """The console script: errors become a message and the exit code of their class."""
    for stream in _streams():
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure:  # LC_ALL=C, or a Windows code page: what cannot be written is shown as an escape
            reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        cli(prog_name="kb", standalone_mode=False)
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):  # click's own exit code for this is 1, which says "no known issue" here
        click.echo("kb: interrupted", err=True)
        sys.exit(_EXIT_INTERRUPTED)
    except KbError as error:
        _complain(error)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the flush at exit has somewhere to go
        sys.exit(141)
    sys.exit(0)


if __name__ == "__main__":
    main()
