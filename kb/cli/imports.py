"""`kb import`: makes drafts of articles from issue threads and scraped pages."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import MAX_STDIN, complain, echo, plain
from kb.errors import ArticleError

if TYPE_CHECKING:
    from kb.importers import DraftArticle

__all__ = ["imports"]

_articles = click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder, else a new one here.",
)
_project = click.option(
    "--project", help="The project that owns the issues. Default: the repository, or what the page names."
)
_limit = click.option("--limit", type=click.IntRange(min=1), help="Write at most this many drafts.")
_dry_run = click.option("--dry-run", is_flag=True, help="Write nothing; only list the drafts.")


@click.group(name="import")
def imports() -> None:
    """Make drafts of articles from issue threads (`github`) or scraped pages (`pages`).

    A draft has the line `status: draft` in its front matter. `kb build` leaves it out until a reviewer removes that
    line, and `kb check` lists it. An existing file is never overwritten.
    """


@imports.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False)
)
@_articles
@_project
@click.option("--label", "labels", multiple=True, help="Only issues with this label. With several, any of them.")
@click.option("--closed-only", is_flag=True, help="Only issues that are closed.")
@_limit
@_dry_run
def github(
    files: tuple[Path, ...],
    articles: Path | None,
    project: str | None,
    labels: tuple[str, ...],
    closed_only: bool,
    limit: int | None,
    dry_run: bool,
) -> None:
    """Make a draft of each issue in FILES: JSON of gh or of the REST API ("-" for stdin).

    \b
      gh issue list -R owner/name --state closed -L 500 \\
        --json number,title,body,comments,labels,url,state,author,createdAt | kb import github -
      kb import github issues.json comments.json --label bug --closed-only --dry-run

    The first post becomes the symptom. The comment that looks most like a fix becomes the fix; this is a guess.
    Bots, pull requests and the words of issue forms are left out; keys and tokens are masked.
    """
    gc.enable()
    from kb.importers import read_threads, thread_draft

    refused: list[ArticleError] = []
    threads = read_threads(((str(file), _text(file)) for file in files), refused.append)
    for error in refused:
        complain(error)
    wanted = {label.casefold() for label in labels}
    chosen = [
        thread
        for thread in threads
        if not (thread.bot or thread.pull or (closed_only and not thread.closed))
        and (not wanted or wanted & {label.casefold() for label in thread.labels})
    ]
    left = len(threads) - len(chosen) + len(refused)
    _save((thread_draft(thread, project) for thread in chosen), articles, limit, dry_run, left)


@imports.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@_articles
@_project
@_limit
@_dry_run
def pages(
    paths: tuple[Path, ...], articles: Path | None, project: str | None, limit: int | None, dry_run: bool
) -> None:
    """Make a draft of each page in PATHS (folders, or .html, .md and .txt files) that has an issue.

    \b
      kb import pages scraped/ --dry-run
      kb import pages faq.html --project vLLM

    HTML needs kb-issues[import]; keys and tokens are masked.
    """
    gc.enable()
    from kb.articles.folder import read_article
    from kb.importers import find_pages, page_draft

    def drafts() -> Iterator[DraftArticle | ArticleError]:
        for path, name in find_pages(paths):
            try:
                yield page_draft(read_article(path.parent, path.name), name, project)
            except ArticleError as error:
                yield error

    _save(drafts(), articles, limit, dry_run)


def _save(
    drafts: Iterable[DraftArticle | ArticleError],
    articles: Path | None,
    limit: int | None,
    dry_run: bool,
    left: int = 0,
) -> None:
    """`left`: how many were left out already."""
    from kb.importers import ArticleFolder, save_draft
    from kb.index.locate import own_articles

    folder = ArticleFolder(articles or own_articles() or Path("articles"))
    new = old = 0
    for draft in drafts:
        if isinstance(draft, ArticleError):
            complain(draft)
            left += 1
            continue
        try:
            saved = save_draft(draft, folder, dry_run=dry_run)
        except ArticleError as error:  # one bad draft must not stop the others
            complain(error)
            left += 1
            continue
        if saved.already:
            old += 1
            echo(f"kb: {plain(saved.path)} has it already", err=True)
            continue
        new += 1
        echo(plain(str(folder.folder / saved.path)))
        if new == limit:
            break
    verb = "would be written" if dry_run else "written"
    echo(f"{new} draft{'s' * (new != 1)} {verb}, {old} there already, {left} left out", err=True)
    if new and not dry_run:
        echo("Review them (kb check lists what is left to write), remove `status: draft`, then run kb build.", err=True)
        echo("请审阅（kb check 会列出待补内容），删去 `status: draft` 后再 kb build。", err=True)


def _text(file: Path) -> str:
    from kb.text.decode import decode

    try:
        with click.open_file(str(file), "rb") as opened:
            data = opened.read(MAX_STDIN + 1)
    except OSError as error:
        raise ArticleError(f"cannot be read ({error.strerror})", path=file) from None
    if len(data) > MAX_STDIN:
        raise ArticleError(f"larger than {MAX_STDIN:,} bytes", path=file, hint="gh issue list -L takes fewer")
    return decode(data)
