"""Shows a draft and the posts of its thread at a terminal: beside each other where it is wide, else one after another.

Titles, posts and names are untrusted: everything passes `kb.text.visible` and is printed as text, never as markup.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kb.importers.posts import Post
from kb.records import Lang
from kb.review.drafts import Draft, candidates
from kb.review.words import SAYS, WHO, because
from kb.text import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["head", "show"]

WIDE = 120  # columns from which the draft stands beside the thread
MOST, LEAST = 200, 60
_INSET = (0, 0, 0, 3)
MAX_ERRORS, MAX_SYMPTOM, MAX_FIX, MAX_POST = 5, 10, 14, 5  # lines


def show(draft: Draft, number: int, count: int, lang: Lang) -> None:
    words = SAYS[lang]
    console = Console(highlight=False, emoji=False)
    width = max(LEAST, min(MOST, console.width))
    console.print()
    console.rule(style="dim")
    console.print(Text(visible(f"{number}/{count}  {draft.path}"), style="dim"))
    left, right = Group(*_draft(draft, words)), Group(*_thread(draft, words, lang))
    if width >= WIDE and draft.posts:
        table = Table.grid(padding=(0, 3), expand=False)
        table.add_column(width=(width - 3) // 2)
        table.add_column(width=(width - 3) // 2)
        table.add_row(left, right)
        console.print(table)
    else:
        console.print(left)
        console.print()
        console.print(right)
    console.print(Text(words["keys"], style="bold"))


def head(post: Post, lang: Lang) -> str:
    """Who wrote it, when, and how likely it is the fix."""
    words = SAYS[lang]
    who = f" ({role})" if (role := WHO[lang][post.who]) else ""
    parts = [f"{round(100 * post.chance)} %", f"@{post.by}{who}", post.at]
    parts += [f"+{post.likes}"] if post.likes else []
    parts.append(words["comment"].format(n=post.number) if post.number else words["first"])
    return visible("  ".join(part for part in parts if part))


def _draft(draft: Draft, words: dict[str, str]) -> Iterator[RenderableType]:
    record = draft.record
    if record is None:
        yield from _lines(draft.text.split("\n"), MAX_FIX, words)
        return
    yield Text(visible(record.title), style="bold")
    yield Text(visible(" · ".join(filter(None, [record.project or "", *record.sources[:1]]))), style="dim")
    if record.errors:
        yield Text(words["errors"], style="cyan")
        yield from _lines(record.errors, MAX_ERRORS, words, "yellow")
    yield Text(words["symptom"], style="cyan")
    told = [line for line in record.symptom.split("\n") if line.strip() not in record.errors]
    yield from _lines(told, MAX_SYMPTOM, words)
    yield Text(words["fix"], style="cyan")
    yield from _lines(record.fix.split("\n"), MAX_FIX, words, "green")


def _thread(draft: Draft, words: dict[str, str], lang: Lang) -> Iterator[RenderableType]:
    if not draft.posts:
        yield Text(words["no thread"], style="dim")
        return
    shown = candidates(draft.posts)
    if not shown:
        yield Text(words["no posts"], style="dim")
    for number, post in enumerate(shown, 1):
        yield Text(f"{number}  {head(post, lang)}", style="bold")
        yield from _lines([line for line in post.text.split("\n") if line.strip()], MAX_POST, words)
        for told, name in zip(because(post, lang), ("for", "against"), strict=True):
            if told:
                yield Padding(Text(f"{words[name]}: {told}", style="dim"), _INSET)


def _lines(lines: Sequence[str], most: int, words: dict[str, str], style: str = "") -> Iterator[Padding]:
    kept = [line for line in lines if line.strip(" `~")]
    for line in kept[:most]:
        yield Padding(Text(visible(line[:400]), style=style), _INSET)
    if len(kept) > most:
        yield Padding(Text(words["more"].format(n=len(kept) - most), style="dim"), _INSET)
