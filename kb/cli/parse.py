"""`kb parse`: shows the issues that the reader finds in one article, without an index."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.common import echo, json_option, print_json, read_stdin, screen

__all__ = ["parse"]


@click.command()
@click.argument("path", type=click.Path(path_type=Path, allow_dash=True, exists=True, dir_okay=False))
@click.option("--explain", is_flag=True, help="Also list every place that is not part of a record, and why.")
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
        article = parse_article(read_stdin(), path="stdin.md")
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
            echo("kb: this is a draft; `kb build` leaves it out until you remove the line `status: draft`", err=True)
