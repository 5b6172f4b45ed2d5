"""`kb new`: writes the two empty files, English and Chinese, of a new article."""

from __future__ import annotations

from pathlib import Path

import click

from kb.cli.common import echo, plain, warn_on_stderr

__all__ = ["new"]


@click.command()
@click.argument("slug")
@click.option("--project", help="The project that owns the issue, in its own spelling: DeepSpeed, ms-swift.")
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles. Default: articles/ at or above this folder, else a new one here.",
)
def new(slug: str, project: str | None, articles: Path | None) -> None:
    """Write the two files (English and Chinese) of a new article named SLUG, with a placeholder in each section.

    \b
      kb new deepspeed-zero3-empty-weights --project DeepSpeed
      kb new nccl-timeout --articles notes

    An existing file is never overwritten. `kb check` lists the placeholders that are left.
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
