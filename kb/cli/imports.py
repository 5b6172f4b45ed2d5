"""`kb import`: makes drafts of articles from issue threads and scraped pages."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import MAX_STDIN, Progress, complain, counted, echo, is_terminal, plain
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

    A draft has the line `status: draft` in its front matter. `kb build` leaves it out until a reviewer has accepted it
    (`kb review`), and `kb check` lists it. An existing file is never overwritten.
    """


@imports.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True, exists=True))
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
    """Make a draft of each issue in FILES: JSON of gh or of the REST API ("-" for stdin), or folders of .json files.

    \b
      gh issue list -R owner/name --state closed -L 500 \\
        --json number,title,body,comments,labels,url,state,author,createdAt | kb import github -
      kb import github issues.json comments.json --label bug --closed-only --dry-run
      kb import github threads/           run it again to go on where it was interrupted

    The first post becomes the symptom. The post that is most likely the fix becomes the fix; where none is convincing,
    the draft says so. The whole thread travels in a folded part of the draft; `kb review` shows it. Pull requests and
    the words of issue forms are left out; keys and tokens are masked.
    """
    gc.enable()
    from kb.importers import Thread, find_json, read_threads, thread_draft

    wanted = {label.casefold() for label in labels}

    def is_wanted(thread: Thread) -> bool:
        if thread.bot or thread.pull or (closed_only and not thread.closed):
            return False
        return not wanted or bool(wanted & {label.casefold() for label in thread.labels})

    named = [file for file in files if not file.is_dir()]  # an issue and its comments may lie in two of them
    groups = [named] if named else []
    groups += [[file] for folder in files if folder.is_dir() for file in find_json(folder)]
    sizes = [sum(file.stat().st_size for file in group if file.is_file()) for group in groups]
    with (
        Progress(is_terminal(sys.stderr)) as progress,
        _Tray(articles, limit, dry_run, quiet=groups != [named]) as tray,
    ):
        for number, group in enumerate(groups):
            try:
                threads = read_threads(((str(file), _text(file)) for file in group), tray.refuse)
            except ArticleError as error:
                if group is named:
                    raise
                tray.refuse(error)  # one bad file must not stop a folder
                continue
            done = sum(sizes[:number])
            for place, thread in enumerate(threads):
                progress("import", (done + sizes[number] * place // len(threads)) >> 10, sum(sizes) >> 10)
                if tray.is_full:
                    return
                if not is_wanted(thread):
                    tray.left += 1
                elif not tray.has(thread.url):
                    tray.put(thread_draft(thread, project))


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

    with _Tray(articles, limit, dry_run) as tray:
        for path, name in find_pages(paths):
            if tray.is_full:
                return
            try:
                draft = page_draft(read_article(path.parent, path.name, named=True), name, project)
            except ArticleError as error:
                tray.refuse(error)
                continue
            tray.put(draft)


class _Tray:
    """Where drafts are put: writes each at once, and says at the end how many there are.

    `quiet`: of many drafts, those that are there already are not named one by one, and at a terminal no others.
    """

    def __init__(self, articles: Path | None, limit: int | None, dry_run: bool, *, quiet: bool = False) -> None:
        from kb.importers import ArticleFolder
        from kb.index.locate import own_articles

        self._folder = ArticleFolder(articles or own_articles() or Path("articles"))
        self._limit, self._dry_run, self._quiet = limit, dry_run, quiet
        self._new = self._old = 0
        self.left = 0
        """how many were left out"""

    def __enter__(self) -> _Tray:
        return self

    @property
    def is_full(self) -> bool:
        return self._limit is not None and self._new >= self._limit

    def refuse(self, error: ArticleError) -> None:
        complain(error)
        self.left += 1

    def has(self, address: str) -> bool:
        """Whether an article was made from this address. It is counted; nothing needs to be read for it."""
        held = self._folder.at(address)
        if held:
            self._count_old(held)
        return bool(held)

    def put(self, draft: DraftArticle) -> None:
        from kb.importers import save_draft

        try:
            saved = save_draft(draft, self._folder, dry_run=self._dry_run)
        except ArticleError as error:  # one bad draft must not stop the others
            self.refuse(error)
            return
        if saved.already:
            self._count_old(saved.path)
            return
        self._new += 1
        if not (self._quiet and is_terminal(sys.stdout)):
            echo(plain(str(self._folder.folder / saved.path)))

    def _count_old(self, path: str) -> None:
        self._old += 1
        if not self._quiet:
            echo(f"kb: {plain(path)} has it already", err=True)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None and kind is not KeyboardInterrupt:
            return
        verb = "would be written" if self._dry_run else "written"
        echo(f"{counted(self._new, 'draft')} {verb}, {self._old} there already, {self.left} left out", err=True)
        if kind is KeyboardInterrupt:
            echo("Interrupted; run it again to go on. 已中断，重新运行即可继续。", err=True)
        elif self._new and not self._dry_run:
            echo("Review them: `kb review` walks through them, and builds what is accepted.", err=True)
            echo("请审阅：`kb review` 逐份审阅草稿，接受的会一并构建。", err=True)


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
