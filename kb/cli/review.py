"""`kb review`: walks through drafts at the terminal, each beside the thread it was made from."""

from __future__ import annotations

import gc
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import complain, echo, folder_option, is_terminal, open_one, plain
from kb.errors import ArticleError, IndexMissing, KbError, QueryError
from kb.records import Lang

if TYPE_CHECKING:
    from kb.importers.posts import Post
    from kb.records import Hit
    from kb.review.drafts import Draft

__all__ = ["review"]

NEAREST = 5


@click.command()
@click.argument("paths", nargs=-1)
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder.",
)
@folder_option
@click.pass_context
def review(context: click.Context, paths: tuple[str, ...], articles: Path | None, index: Path | None) -> None:
    """Walk through the drafts: take the right comment as the fix, edit, accept. 逐份审阅草稿。

    Each draft stands beside its thread, the comments ranked, with the reason. 1-9 takes a comment as the fix, e edits,
    s skips, d marks a duplicate of one of the nearest issues, a accepts, u takes the last decision back. Every decision
    is written at once; at the end the accepted ones are built, as `kb build` does. PATHS: only these drafts.

    \b
      kb import github threads/ && kb review
      kb review en/vllm-1710-crash.md
    """
    gc.enable()
    from kb.index.locate import own_articles
    from kb.review.drafts import find_drafts

    words = _words()
    folder = articles or own_articles()
    if folder is None:
        raise IndexMissing("no articles/ at or above this folder", path=Path.cwd(), hint="kb review --articles DIR")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise QueryError(
            "kb review asks at a terminal 需要在终端中运行", hint="kb check lists the drafts; kb build --drafts"
        )
    drafts = _chosen(find_drafts(folder), paths, folder)
    if not drafts:
        echo(words["no drafts"])
        return
    desk = _Desk(folder, drafts, index, _lang())
    try:
        desk.walk()
    except (KeyboardInterrupt, click.Abort, EOFError):
        if desk.accepted:
            echo(f"\n{words['build later']}", err=True)
        raise click.Abort from None
    echo(
        words["end"].format(
            accepted=len(desk.accepted),
            duplicates=len(desk.duplicates),
            left=len(drafts) - len(desk.accepted) - len(desk.duplicates),
        )
    )
    if desk.accepted:
        from kb.cli.build import build

        context.invoke(build, articles=folder, index=index)


def _lang() -> Lang:
    from kb.language import reader_language

    return reader_language() or "en"


def _words() -> dict[str, str]:
    from kb.review.words import SAYS

    return SAYS[_lang()]


def _chosen(found: list[str], paths: tuple[str, ...], folder: Path) -> list[str]:
    if not paths:
        return found
    wanted = {path.removeprefix(f"{folder.as_posix()}/").removeprefix("./") for path in map(_posix, paths)}
    for path in sorted(wanted - {*found}):
        complain(ArticleError("is no draft below the articles", path=path))
    return [path for path in found if path in wanted]


def _posix(path: str) -> str:
    return Path(path).as_posix()


@dataclass
class _Desk:
    """One walk through the drafts. `decided`: path, text before and after of each decision, for `u`."""

    folder: Path
    drafts: list[str]
    index: Path | None
    lang: Lang
    accepted: set[str] = field(default_factory=set)
    duplicates: set[str] = field(default_factory=set)
    decided: list[tuple[str, str, str]] = field(default_factory=list)
    warned: str = ""
    """the text of which was said what it lacks"""

    def walk(self) -> None:
        at = 0
        while at < len(self.drafts):
            path = self.drafts[at]
            try:
                draft = self._read(path)
            except ArticleError as error:
                self._say("unread", error=error)
                at += 1
                continue
            self._show(draft, at)
            step = self._decide(draft)
            if step is None:
                return
            at = max(0, at + step)

    def _read(self, path: str) -> Draft:
        from kb.review.drafts import Draft

        return Draft.read(self.folder, path)

    def _decide(self, draft: Draft) -> int | None:
        """How far to go on in the drafts: 0 shows this one again. None: stop."""
        while True:
            key = click.getchar()
            if key in ("\x03", "\x04"):
                raise click.Abort
            try:
                if key == "q":
                    return None
                if key == "s":
                    self._say("skipped", path=draft.path)
                    return 1
                if key == "u":
                    return self._undo(draft.path)
                if key == "e":
                    return self._edit(draft)
                if key.isdecimal() and key.isascii() and key != "0":
                    if self._pick(draft, int(key)):
                        return 0
                elif key == "a":
                    if self._accept(draft):
                        return 1
                elif key == "d":
                    if self._mark_duplicate(draft):
                        return 1
                elif key == "t":
                    self._page(draft)
                else:
                    self._say("help" if key == "?" else "unknown key")
            except KbError as error:
                complain(error)
                if isinstance(error, ArticleError) and "meanwhile" in error.message:
                    return 0

    def _keep(self, draft: Draft, new: str) -> None:
        from kb.review.drafts import keep

        keep(self.folder, draft.path, draft.text, new)
        self.decided.append((draft.path, draft.text, new))

    def _pick(self, draft: Draft, number: int) -> bool:
        from kb.review.drafts import candidates, with_fix

        shown = candidates(draft.posts)
        if number > len(shown):
            self._say("no post" if draft.posts else "no thread", n=number)
            return False
        self._keep(draft, with_fix(draft, shown[number - 1]))
        self._say("picked", n=number)
        return True

    def _accept(self, draft: Draft) -> bool:
        from kb.review.drafts import accepted, missing

        new = accepted(draft)
        problems = missing(self.folder, draft.path, new)
        if problems and self.warned != new:
            self.warned = new
            self._say("lacks")
            for problem in problems:
                echo(f"  {problem.level}: {problem.message}")
            self._say("blocked" if problems[0].level == "error" else "again")
            return False
        if problems and problems[0].level == "error":
            self._say("blocked")
            return False
        self._keep(draft, new)
        self.accepted.add(draft.path)
        self._say("accepted", path=draft.path)
        return True

    def _mark_duplicate(self, draft: Draft) -> bool:
        from kb.brief import hit_line
        from kb.review.drafts import as_duplicate

        hits = self._nearest(draft)
        if not hits:
            self._say("none near")
            return False
        self._say("nearest")
        for number, hit in enumerate(hits, 1):
            echo(f"  {number}  {hit_line(hit)}")
        key = click.getchar()
        if key in ("\x03", "\x04"):
            raise click.Abort
        if not (key.isdecimal() and key.isascii() and 1 <= int(key) <= len(hits)):
            self._say("keys")
            return False
        issue = hits[int(key) - 1].record.issue
        self._keep(draft, as_duplicate(draft, issue))
        self.duplicates.add(draft.path)
        self._say("duplicate", path=draft.path, issue=issue)
        return True

    def _nearest(self, draft: Draft) -> list[Hit]:
        from kb.review.drafts import question

        with open_one(self.index or self.folder) as base:
            return list(base.search(question(draft), k=NEAREST).hits)

    def _edit(self, draft: Draft) -> int:
        click.edit(filename=str(self.folder / draft.path))
        return 0

    def _undo(self, here: str) -> int:
        """The draft that was decided last is the next one to be shown."""
        from kb.review.drafts import keep

        if not self.decided:
            self._say("no undo")
            return 0
        path, before, after = self.decided[-1]
        keep(self.folder, path, after, before)
        self.decided.pop()
        self.accepted.discard(path)
        self.duplicates.discard(path)
        self._say("undone", path=path)
        return self.drafts.index(path) - self.drafts.index(here)

    def _page(self, draft: Draft) -> None:
        text = "\n\n".join(f"{self._head(post)}\n{plain(post.text)}" for post in draft.posts)
        click.echo_via_pager(text or _words()["no thread"])

    def _say(self, name: str, **values: object) -> None:
        echo(_words()[name].format(**values))

    def _head(self, post: Post) -> str:
        from kb.cli.desk import head

        return head(post, self.lang)

    def _show(self, draft: Draft, at: int) -> None:
        from kb.cli.desk import show

        show(draft, at + 1, len(self.drafts), self.lang)
