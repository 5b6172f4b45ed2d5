"""`kb build`: makes or renews the index of a folder of articles."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from kb.cli.common import (
    Progress,
    complain,
    counted,
    echo,
    is_terminal,
    json_option,
    plain,
    print_json,
    warn_on_stderr,
)
from kb.cli.words import say, told
from kb.errors import ArticleError, IndexMissing, IndexWriteFailed

if TYPE_CHECKING:
    from kb.index.build import BuildReport
    from kb.index.milvus.publish import Published

__all__ = ["build"]

_MOST_NAMED = 30


@click.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder.",
)
@click.option(
    "--index",
    type=click.Path(path_type=Path),
    help="Folder to write the index to. Default: $KB_INDEX, else index/ beside the articles.",
)
@click.option(
    "--encoder",
    help="A sentence-transformers model by name or folder (needs kb-issues[transformers]). Default: kb's own.",
)
@click.option(
    "--keep-going/--no-keep-going",
    default=None,
    help="What to do about articles that cannot be read. Default: build the others and exit with 65. --keep-going: the "
    "same, and exit with 0. --no-keep-going: build nothing.",
)
@click.option(
    "--compact",
    is_flag=True,
    help="Join what earlier builds of a large base left in pieces; it does so by itself, too.",
)
@click.option(
    "--store",
    metavar="ADDRESS",
    help="Then publish the index in Milvus, as the base of this name: milvus://host:19530/base. $KB_STORE_TOKEN, or a "
    "file that $KB_STORE_TOKEN_FILE names, holds the token.",
)
@click.option("--drafts", is_flag=True, help="Include articles whose front matter says `status: draft`.")
@json_option
def build(
    articles: Path | None,
    index: Path | None,
    encoder: str | None,
    keep_going: bool | None,
    compact: bool,
    store: str | None,
    drafts: bool,
    as_json: bool,
) -> None:
    """Make or renew the index of a folder of articles. Unchanged articles are not parsed or encoded again, nor are
    those that an interrupted build had finished.

    \b
      kb build                                    articles/ here or above, into index/ beside it
      kb build --articles notes --index notes.kb
      kb build --encoder BAAI/bge-m3              any sentence-transformers model
      kb build --store milvus://host:19530/base   then published for many machines (docs/store.md)
    """
    gc.enable()
    warn_on_stderr()
    from kb.config import settings
    from kb.index.build import BuildFailed
    from kb.index.build import build as build_index
    from kb.index.locate import holds_articles, mark, stamp

    if store is not None:  # a mistake in it is told now, and not after the build
        from kb.index.milvus.address import read_address

        read_address(store)
    articles = articles or _own_articles()
    known = settings().base_of(articles)
    named = os.environ.get("KB_INDEX")
    target = index or (Path(named) if named else articles.resolve().parent / "index")
    if index is None and target.is_symlink():  # who made the link chose where files are replaced
        raise IndexWriteFailed(
            "a symbolic link is not written through", path=target, hint="name it: kb build --index DIR"
        )
    if holds_articles(target, readmes=False):  # a checkout keeps a README in index/
        raise IndexWriteFailed("this folder holds articles, not an index", path=target, hint="kb build --index DIR")
    found = stamp(articles)  # before the build: an article that changes during it is newer than the index
    try:
        with _stopped_by_signals(), Progress(is_terminal(sys.stderr)) as progress:
            report = build_index(
                articles,
                target,
                encoder=encoder,
                keep_going=keep_going is not False,
                drafts=drafts,
                compact=compact,
                projects=known.projects if known else None,
                lang=known.lang if known else None,
                progress=progress,
            )
    except BuildFailed as failed:
        for error in failed.bad:
            complain(error)
        raise
    except _Stopped as stopped:
        complain(say("stopped by {signal}", signal=signal.Signals(stopped.number).name))
        sys.exit(128 + stopped.number)
    mark(target, found)
    _trust_what_was_built(target, articles)
    if not report.issues:
        complain(say("no issue in these articles; `kb search` will know nothing here"))
    _tell_what_is_missing(report)
    published = _published(target, store) if store is not None else None
    if as_json:
        print_json(
            {
                "snapshot": report.snapshot,
                "articles": report.articles,
                "issues": report.issues,
                "records": report.records,
                "segments": report.segments,
                "recall": report.recall,
                "parsed": report.parsed,
                "removed": report.removed,
                "bad": [str(error) for error in report.bad],
                "skipped": [{"path": s.path, "reason": s.reason} for s in report.skipped],
                "without_records": list(report.without_records),
                "drafts": list(report.drafts),
                "unlike": [asdict(one) for one in report.unlike],
                "took_s": round(report.took_s, 3),
                "published": asdict(published) if published else None,
            }
        )
    else:
        echo(
            say(
                "{articles} ({parsed} new or changed, {removed} removed), {issues}, {records} in {took} s "
                "-> {target} [{snapshot}]",
                articles=counted(report.articles, "article"),
                parsed=report.parsed,
                removed=report.removed,
                issues=counted(report.issues, "issue"),
                records=counted(report.records, "record"),
                took=f"{report.took_s:.2f}",
                target=plain(str(target)),
                snapshot=report.snapshot,
            )
        )
        if report.recall is not None:
            echo(
                say(
                    "vectors: FAISS proposes {found} of the ten nearest records; what it proposes is compared exactly",
                    found=f"{report.recall:.1%}",
                )
            )
        if published:
            echo(
                say(
                    "published: {rows} rows in {took} s -> {store}"
                    if published.rows
                    else "published already -> {store}",
                    rows=published.rows,
                    took=f"{published.took_s:.1f}",
                    store=store,
                )
            )
    if report.bad and keep_going is None:
        sys.exit(ArticleError.exit_code)


class _Stopped(KeyboardInterrupt):
    """As Ctrl-C: what was read is kept."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number: int = number


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """What ends a service, a container or a terminal ends a build as Ctrl-C does. `timeout` sends its signal twice: the
    first one counts. What is ignored, as by nohup, stays so."""
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    heard = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]

    def stop(number: int, frame: FrameType | None) -> None:
        for one in heard:
            signal.signal(one, signal.SIG_IGN)
        raise _Stopped(number)

    try:
        for number in heard:
            signal.signal(number, stop)
        yield
    finally:
        for number in heard:
            signal.signal(number, signal.SIG_DFL)


def _published(index: Path, store: str) -> Published:
    from kb.index.milvus.address import token_for
    from kb.index.milvus.publish import publish

    with Progress(is_terminal(sys.stderr)) as progress:
        return publish(index, store, token_for(), progress=progress)


def _tell_what_is_missing(report: BuildReport) -> None:
    """On stderr, each file once: what cannot be read, what is left out and why, what holds no issue."""
    for error in report.bad:
        complain(error)
    if report.bad:
        complain(say("{articles} left out; the index holds the others", articles=counted(len(report.bad), "article")))
    reasons: dict[str, list[str]] = {}
    for skipped in report.skipped:
        reasons.setdefault(skipped.reason, []).append(skipped.path)
    for reason, paths in reasons.items():
        complain(say("left out ({reason}): {paths}", reason=told(reason), paths=_named(paths)))
    if report.without_records:
        paths = list(report.without_records)
        complain(say("no issue found in {paths}; `kb parse --explain` tells why", paths=_named(paths)))
    if report.drafts:
        complain(say("{drafts} left out; --drafts includes them", drafts=counted(len(report.drafts), "draft")))
    if report.unlike:
        complain(
            say(
                "in {articles} English and Chinese tell different issues: {joined} are joined, {apart} stand alone; "
                "`kb check --only twins-differ` lists them",
                articles=counted(len(report.unlike), "article"),
                joined=sum(one.joined for one in report.unlike),
                apart=sum(one.only_en + one.only_zh for one in report.unlike),
            )
        )


def _named(paths: list[str]) -> str:
    names, more = plain(", ".join(paths[:_MOST_NAMED])), len(paths) - _MOST_NAMED
    return say("{names} and {more} more", names=names, more=more) if more > 0 else names


def _own_articles() -> Path:
    from kb.index.locate import own_articles

    found = own_articles()
    if found is None:
        raise IndexMissing("no articles/ at or above this folder", path=Path.cwd(), hint="kb build --articles DIR")
    return found


def _trust_what_was_built(index: Path, articles: Path) -> None:
    """Building a base in a place where kb looks for one means trusting it."""
    from kb.errors import IndexWriteFailed
    from kb.index.trust import decision, remember

    folder = index.resolve().parent
    if index.name == "index" and articles.resolve().parent == folder and decision(folder) is None:
        with contextlib.suppress(IndexWriteFailed):
            remember(folder, True)
