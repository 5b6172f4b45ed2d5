"""`kb check`: lists what is wrong with the articles and the index, rule by rule; `--stats` counts what there is."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.cli.common import (
    counted,
    echo,
    folder_option,
    forbid_network,
    json_option,
    plain,
    print_json,
    table,
    warn_on_stderr,
)
from kb.cli.words import language, say, told
from kb.errors import ArticleError, IndexMissing

if TYPE_CHECKING:
    from kb.articles.assumed import Assumed
    from kb.records import Problem
    from kb.review.rules import Choice

__all__ = ["check"]

_MOST = 10
"""lines for each rule, unless --all"""


@click.command()
@click.option(
    "--articles",
    type=click.Path(path_type=Path),
    help="Folder of articles; the index is checked only if --index names one. Default: articles/ here or above.",
)
@click.option("--strict", is_flag=True, help="Exit with 65 for a warning, too.")
@click.option("--off", multiple=True, metavar="RULES", help="Rules that do not count, joined by commas.")
@click.option("--on", multiple=True, metavar="RULES", help="Rules of kb's own form that count in every article.")
@click.option("--only", multiple=True, metavar="RULES", help="These rules and no others, in every article.")
@click.option("--all", "everything", is_flag=True, help=f"List all problems, not only {_MOST} for each rule.")
@click.option("--rules", is_flag=True, help="Only list the rules.")
@click.option("--stats", is_flag=True, help="Only count articles, issues and projects, by language.")
@json_option
@folder_option
def check(
    articles: Path | None,
    strict: bool,
    off: tuple[str, ...],
    on: tuple[str, ...],
    only: tuple[str, ...],
    everything: bool,
    rules: bool,
    stats: bool,
    as_json: bool,
    index: Path | None,
) -> None:
    """Find mistakes in the articles and damage in the index. Changes nothing.

    Prints problems rule by rule, each as `path:line: error|warning: what`, and exits with 65 when there is an error.
    Rules about the form of kb's own articles do not count in pages that are not written in it. `[check]` in kb.toml
    says `off` and `on` for good.

    \b
      kb check                             articles/ and index/ here or above
      kb check --strict                    for CI: warnings fail, too
      kb check --off dead-link,no-project  without these rules
      kb check --only hollow --all         one rule, all that it finds
      kb check --rules                     what is looked for
      kb check --stats                     how many articles, issues and projects there are
    """
    gc.enable()
    warn_on_stderr()
    forbid_network()
    if rules:
        _print_rules(as_json)
        return
    from kb.index.fsck import RULE, check_index
    from kb.index.locate import locate, own_articles
    from kb.review.lint import review
    from kb.review.rules import RULES

    choice = _choice(off, on, only)
    folder = articles or (None if index else own_articles())
    if stats:
        _print_stats(folder or locate(index).articles, as_json)
        return
    problems = review(folder, choice, assumed=_assumed(folder)) if folder else []
    place = locate(index)
    if (index or not place.kept_fresh) and not (articles and index is None):
        if choice.counts(RULES[RULE]):
            problems += check_index(place.index, articles or place.articles, named=place.named)
    elif folder is None:
        raise IndexMissing(
            "there are no articles and no index here", path=Path.cwd(), hint="--articles DIR or --index DIR"
        )
    if as_json:
        print_json(
            [{name: getattr(one, name) for name in ("path", "line", "level", "rule", "message")} for one in problems]
        )
    else:
        _print_problems(problems, most=None if everything else _MOST)
    if drafts := sum(one.rule == "draft" for one in problems):
        echo(say("{drafts} waiting for review", drafts=counted(drafts, "draft")), err=True)
    errors = sum(one.level == "error" for one in problems)
    warnings = counted(len(problems) - errors, "warning")
    echo(say("{errors}, {warnings}", errors=counted(errors, "error"), warnings=warnings), err=True)
    failing = errors or (strict and any(not RULES[one.rule].dated for one in problems))
    sys.exit(ArticleError.exit_code if failing else 0)


def _assumed(folder: Path) -> Assumed:
    """What kb.toml says about the articles of a folder."""
    from kb.articles.assumed import Assumed
    from kb.config import settings

    base = settings().base_of(folder)
    return Assumed(base.projects, base.lang) if base else Assumed()


def _choice(off: Sequence[str], on: Sequence[str], only: Sequence[str]) -> Choice:
    """What the arguments say; where they say nothing of a rule, what kb.toml says."""
    from kb.config import settings
    from kb.review.rules import choose

    def names(given: Sequence[str]) -> set[str]:
        return {name.strip() for one in given for name in one.split(",") if name.strip()}

    known = settings()
    return choose(off=names(off) | (known.check_off - names(on)), on=names(on) | known.check_on, only=names(only))


def _print_problems(problems: Sequence[Problem], *, most: int | None) -> None:
    """By rule, then by file; at the end how many each rule has."""
    from kb.review.rules import RULES

    counts = Counter(one.rule for one in problems)
    found = [rule for rule in RULES.values() if counts[rule.name]]
    for rule in found:
        echo(f"{rule.name} ({counts[rule.name]}): {rule.words(language() or 'en')}")
        of_rule = [one for one in problems if one.rule == rule.name]
        for one in of_rule[:most]:
            where = plain(one.path) + (f":{one.line}" if one.line else "")
            echo(f"{where}: {one.level}: {plain(told(one.message))}")
        if more := len(of_rule[most:]) if most is not None else 0:
            echo(say("... and {more} more: kb check --only {rule} --all", more=more, rule=rule.name))
        echo()
    if len(found) > 1:
        for rule in found:
            echo(f"{counts[rule.name]:6}  {rule.name}")


def _print_rules(as_json: bool) -> None:
    from kb.review.rules import RULES

    if as_json:
        print_json([{"rule": r.name, "own_form_only": r.house, "en": r.en, "zh": r.zh} for r in RULES.values()])
        return
    headings = (
        say("In every article:"),
        say("In articles in kb's own form (--on RULE: in every article):"),
    )
    for house, heading in zip((False, True), headings, strict=True):
        echo(heading)
        for rule in RULES.values():
            if rule.house == house:
                echo(f"  {rule.name:16} {rule.words(language() or 'en')}")


def _print_stats(folder: Path | None, as_json: bool) -> None:
    from kb.review.tally import tally

    if folder is None:
        raise IndexMissing("there are no articles here", path=Path.cwd(), hint="kb check --stats --articles DIR")
    rows = [one.as_dict() for one in tally(folder)]
    if as_json:
        print_json(rows)
        return
    heads = {
        "lang": say("language"),
        "articles": say("articles"),
        "issues": say("issues"),
        "records": say("records"),
        "projects": say("projects"),
        "with_errors": say("with error lines"),
        "without_errors": say("without"),
        "with_fix": say("with a fix"),
        "mean_words": say("words/record"),
        "sources": say("sources"),
    }
    cells = [[say("all") if value == "all" else str(value) for value in row.values()] for row in rows]
    table([heads[name] for name in rows[0]], cells)
