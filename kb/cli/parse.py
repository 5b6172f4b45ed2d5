"""`kb parse`: shows the issues that the reader finds in one article, without an index."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from kb.cli.common import echo, json_option, print_json, read_stdin, screen

__all__ = ["parse"]


@click.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False))
@click.option("--explain", is_flag=True, help="Account for every line: what it was taken for, how surely, and why.")
@click.option("--project", help="The project, where the article names none.")
@click.option("--every-question", is_flag=True, help="Of an FAQ, also take the questions that are about no failure.")
@json_option
def parse(path: Path, explain: bool, project: str | None, every_question: bool, as_json: bool) -> None:
    """Show the issues found in the article PATH ("-" for stdin), without touching any index.

    \b
      kb parse articles/en/foo.md
      kb parse scraped.txt --json
      kb parse scraped.txt --explain
      kb parse faq.md --every-question
    """
    from kb.articles.folder import read_article
    from kb.scraped import parse_and_tell

    if str(path) == "-":
        data, inside = read_stdin(), "stdin.md"
    else:
        root = _root(path)
        inside = path.absolute().relative_to(root).as_posix()
        data = read_article(root, inside, named=True)
    article, reading = parse_and_tell(data, path=inside, every_question=every_question, project=project)
    passages = []
    if explain and reading is not None:
        from kb.scraped.explain import passages as passages_of

        passages = passages_of(reading, len(data.splitlines()))
    if as_json and explain:
        remarks = [{"line": r.line, "kind": r.kind, "text": r.text} for r in article.remarks]
        records = [record.as_dict() for record in article.records]
        told = [asdict(passage) for passage in passages]
        print_json({"draft": article.draft, "records": records, "remarks": remarks, "passages": told})
    elif as_json:
        print_json([record.as_dict() for record in article.records])
    else:
        screen().article(article, explain=explain, passages=passages)
        if article.draft:
            echo("kb: this is a draft; `kb build` leaves it out until you remove the line `status: draft`", err=True)


def _root(path: Path) -> Path:
    """The folder below which the article lies: the nearest `articles/` above it, else the folder that holds it or its
    folder of a language."""
    folder = path.absolute().parent
    above = next((one for one in (folder, *folder.parents) if one.name == "articles"), None)
    return above or (folder.parent if folder.name in ("en", "zh") else folder)
