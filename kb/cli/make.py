"""Here are articles; `build` makes an index of them, `parse` shows what they hold, `new` begins one, `check` finds what
is wrong."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from pathlib import Path
from typing import Literal

import click

from kb.cli.common import (
    MAX_STDIN,
    Progress,
    complain,
    echo,
    index_option,
    json_option,
    plain,
    print_json,
    screen,
    warn_on_stderr,
)
from kb.errors import ArticleError, IndexMissing

__all__ = ["build", "check", "completion", "new", "parse", "trust"]


@click.command()
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
@click.option("--drafts", is_flag=True, help="Also the articles whose front matter says `status: draft`.")
@json_option
def build(
    articles: Path | None, index: Path | None, encoder: str | None, keep_going: bool, drafts: bool, as_json: bool
) -> None:
    """Make or renew the index of a folder of articles. Unchanged articles are neither parsed nor encoded again.

    \b
      kb build                                    articles/ here or above, into index/ beside it
      kb build --articles notes --index notes.kb
      kb build --encoder BAAI/bge-m3              any sentence-transformers model
    """
    gc.enable()
    warn_on_stderr()
    from kb.index.build import BuildFailed
    from kb.index.build import build as build_index
    from kb.index.locate import mark, stamp

    articles = articles or _own_articles()
    named = os.environ.get("KB_INDEX")
    target = index or (Path(named) if named else articles.resolve().parent / "index")
    found = stamp(articles)  # before the build: what is written to meanwhile is newer than the index
    try:
        with Progress(sys.stderr.isatty()) as progress:
            report = build_index(
                articles, target, encoder=encoder, keep_going=keep_going, drafts=drafts, progress=progress
            )
    except BuildFailed as failed:
        for error in failed.bad:
            complain(error)
        raise
    mark(target, found)
    _trust_what_was_built(target, articles)
    for error in report.bad:
        complain(error)
    for skipped in report.skipped:
        echo(f"kb: skipped {plain(skipped.path)}: {skipped.reason}", err=True)
    for path in report.without_records:
        echo(f"kb: no issue found in {plain(path)}; see `kb parse --explain`", err=True)
    if report.drafts:
        echo(f"kb: {_counted(len(report.drafts), 'draft')} left out; --drafts takes them in", err=True)
    if as_json:
        print_json(
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
                "drafts": list(report.drafts),
                "took_s": round(report.took_s, 3),
            }
        )
        return
    echo(
        f"{_counted(report.articles, 'article')} ({report.parsed} new or changed, {report.removed} removed), "
        f"{_counted(report.issues, 'issue')}, {_counted(report.records, 'record')} in {report.took_s:.2f} s "
        f"-> {plain(str(target))} [{report.snapshot}]"
    )


@click.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False))
@click.option("--explain", is_flag=True, help="Also list every place that is in no record, and why.")
@json_option
def parse(path: Path, explain: bool, as_json: bool) -> None:
    """Show the issues found in the article PATH ("-" for stdin), without touching any index.

    \b
      kb parse articles/en/foo.md
      kb parse scraped.txt --json
      kb parse scraped.txt --explain
    """
    from kb.articles.folder import read_article
    from kb.scraped import parse as parse_article

    if str(path) == "-":
        article = parse_article(sys.stdin.buffer.read(MAX_STDIN), path="stdin.md")
    else:
        folder = path.absolute().parent
        inside = f"{folder.name}/{path.name}" if folder.name in ("en", "zh") else path.name
        root = folder.parent if folder.name in ("en", "zh") else folder
        article = parse_article(read_article(root, inside), path=inside)
    if as_json and explain:
        remarks = [{"line": r.line, "kind": r.kind, "text": r.text} for r in article.remarks]
        records = [record.as_dict() for record in article.records]
        print_json({"draft": article.draft, "records": records, "remarks": remarks})
    elif as_json:
        print_json([record.as_dict() for record in article.records])
    else:
        screen().article(article, explain=explain)
        if article.draft:
            echo("kb: a draft, which `kb build` leaves out until `status: draft` is taken out", err=True)


@click.command()
@click.argument("slug")
@click.option("--project", help="The project that owns the issue, as it writes itself: DeepSpeed, ms-swift.")
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder, else a new one here.",
)
def new(slug: str, project: str | None, articles: Path | None) -> None:
    """Lay out both files of a new article, named SLUG, with what each section wants.

    \b
      kb new deepspeed-zero3-empty-weights --project DeepSpeed
      kb new nccl-timeout --articles notes

    A file that is there is never overwritten. `kb check` finds what was left to write.
    """
    warn_on_stderr()
    from kb.articles.scaffold import is_slug, scaffold
    from kb.index.locate import own_articles

    if not is_slug(slug):
        raise click.BadParameter(
            f"{plain(repr(slug))} cannot name an article: small ASCII letters, digits and single hyphens, at most 80.",
            param_hint="SLUG",
        )
    for path in scaffold(articles or own_articles() or Path("articles"), slug, project=project):
        echo(plain(str(path)))


@click.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles; no index is looked at unless --index names one. Default: articles/ at or above this.",
)
@click.option("--strict", is_flag=True, help="Exit with 65 when there is a warning, too.")
@click.option("--stats", is_flag=True, help="Instead count articles, issues and projects, by language.")
@json_option
@index_option
def check(articles: Path | None, strict: bool, stats: bool, as_json: bool, index: Path | None) -> None:
    """Find what a reviewer of the articles, and a fsck of the index, would send back. Changes nothing.

    Prints `path:line: error|warning: what` and exits with 65 when there is an error.

    \b
      kb check                   articles/ and index/ here or above
      kb check --strict          for CI: warnings fail, too
      kb check --stats           how much there is of what
    """
    gc.enable()
    warn_on_stderr()
    from kb.index.fsck import check_index
    from kb.index.locate import locate, own_articles
    from kb.review.lint import WAITS, review

    folder = articles or (None if index else own_articles())
    if stats:
        _print_stats(folder or locate(index).articles, as_json)
        return
    findings = review(folder) if folder else []
    place = locate(index)
    if (index or not place.kept_fresh) and not (articles and index is None):
        findings += check_index(place.index, articles or place.articles, named=place.named)
    elif folder is None:
        raise IndexMissing(
            "there are no articles and no index here", path=Path.cwd(), hint="--articles DIR or --index DIR"
        )
    if as_json:
        print_json([{"path": f.path, "line": f.line, "level": f.level, "message": f.message} for f in findings])
    else:
        for f in findings:
            where = plain(f.path) + (f":{f.line}" if f.line else "")
            echo(f"{where}: {f.level}: {plain(f.message)}")
    if drafts := sum(f.message == WAITS for f in findings):
        echo(f"{_counted(drafts, 'draft')} waiting for review", err=True)
    errors = sum(f.level == "error" for f in findings)
    echo(f"{_counted(errors, 'error')}, {_counted(len(findings) - errors, 'warning')}", err=True)
    sys.exit(ArticleError.exit_code if errors or (strict and findings) else 0)


def _print_stats(folder: Path | None, as_json: bool) -> None:
    from kb.review.lint import tally

    if folder is None:
        raise IndexMissing("there are no articles here", path=Path.cwd(), hint="kb check --stats --articles DIR")
    rows = [one.as_dict() for one in tally(folder)]
    if as_json:
        print_json(rows)
        return
    heads = {
        "lang": "language",
        "with_errors": "with error lines",
        "without_errors": "without",
        "with_fix": "with a fix",
        "mean_words": "words/record",
    }
    names = [heads.get(name, name) for name in rows[0]]
    widths = [max(len(name), *(len(str(row[key])) for row in rows)) for name, key in zip(names, rows[0], strict=True)]
    for cells in (names, *(map(str, row.values()) for row in rows)):
        aligned = [cell.rjust(width) for cell, width in zip(cells, widths, strict=True)]
        echo("  ".join([aligned[0].strip().ljust(widths[0]), *aligned[1:]]))


@click.command()
@click.argument("folder", required=False, type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--revoke", is_flag=True, help="Forget it: the base is not used until it is trusted anew.")
def trust(folder: Path | None, revoke: bool) -> None:
    """Let the base in FOLDER answer whenever you work in FOLDER or below. Default: the nearest one found here.

    \b
      kb trust                   the articles/ or index/ at or above this folder
      kb trust ~/work/runbooks
      kb trust --revoke

    A knowledge base holds commands. One that came with a folder (a cloned repository, a shared disk) is used only when
    you have said so here, have built it yourself, or name it with --index.
    """
    from kb.index.locate import nearest_base
    from kb.index.trust import remember, why_not_ours

    found = nearest_base(folder)
    if found is None or (folder is not None and found != folder.resolve()):
        raise IndexMissing("there is no articles/ and no index/ here", path=folder or Path.cwd(), hint="kb trust DIR")
    if not revoke and (theirs := why_not_ours(found)):
        raise IndexMissing(f"it belongs to somebody else ({theirs})", path=found, hint="kb search --index DIR uses it")
    remember(found, None if revoke else True)
    echo(f"{found} is {'no longer trusted' if revoke else 'trusted'}")


def _trust_what_was_built(index: Path, articles: Path) -> None:
    """Whoever builds a base where kb looks for one has decided about it."""
    from kb.errors import IndexWriteFailed
    from kb.index.trust import decision, remember

    folder = index.resolve().parent
    if index.name == "index" and articles.resolve().parent == folder and decision(folder) is None:
        with contextlib.suppress(IndexWriteFailed):
            remember(folder, True)


@click.command()
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
    root = click.get_current_context().find_root().command
    click.echo(found(root, {}, "kb", "_KB_COMPLETE").source())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _own_articles() -> Path:
    from kb.index.locate import own_articles

    found = own_articles()
    if found is None:
        raise IndexMissing("no articles/ at or above this folder", path=Path.cwd(), hint="kb build --articles DIR")
    return found
