"""`kb check`: lists what is wrong with the articles and with the index; `--stats` counts what there is."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import click

from kb.cli.common import counted, echo, forbid_network, index_option, json_option, plain, print_json, warn_on_stderr
from kb.cli.words import say
from kb.errors import ArticleError, IndexMissing

__all__ = ["check"]


@click.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles; the index is checked only if --index names one. Default: articles/ here or above.",
)
@click.option("--strict", is_flag=True, help="Exit with 65 for a warning, too.")
@click.option("--stats", is_flag=True, help="Only count articles, issues and projects, by language.")
@json_option
@index_option
def check(articles: Path | None, strict: bool, stats: bool, as_json: bool, index: Path | None) -> None:
    """Find mistakes in the articles and damage in the index. Changes nothing.

    Prints `path:line: error|warning: what` and exits with 65 when there is an error.

    \b
      kb check                   articles/ and index/ here or above
      kb check --strict          for CI: warnings fail, too
      kb check --stats           how many articles, issues and projects there are
    """
    gc.enable()
    warn_on_stderr()
    forbid_network()
    from kb.index.fsck import check_index
    from kb.index.locate import locate, own_articles
    from kb.review.lint import IS_DRAFT, review

    folder = articles or (None if index else own_articles())
    if stats:
        _print_stats(folder or locate(index).articles, as_json)
        return
    problems = review(folder) if folder else []
    place = locate(index)
    if (index or not place.kept_fresh) and not (articles and index is None):
        problems += check_index(place.index, articles or place.articles, named=place.named)
    elif folder is None:
        raise IndexMissing(
            "there are no articles and no index here", path=Path.cwd(), hint="--articles DIR or --index DIR"
        )
    if as_json:
        print_json([{name: getattr(one, name) for name in ("path", "line", "level", "message")} for one in problems])
    else:
        for one in problems:
            where = plain(one.path) + (f":{one.line}" if one.line else "")
            echo(f"{where}: {one.level}: {plain(one.message)}")
    if drafts := sum(one.message == IS_DRAFT for one in problems):
        echo(say("{drafts} waiting for review", drafts=counted(drafts, "draft")), err=True)
    errors = sum(one.level == "error" for one in problems)
    warnings = counted(len(problems) - errors, "warning")
    echo(say("{errors}, {warnings}", errors=counted(errors, "error"), warnings=warnings), err=True)
    sys.exit(ArticleError.exit_code if errors or (strict and problems) else 0)


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
