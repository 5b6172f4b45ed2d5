"""Finds problems in articles, and counts what there is. Changes nothing."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from kb.articles import is_draft, peek
from kb.articles.folded import has_fold, without_fold
from kb.articles.folder import list_articles, read_articles
from kb.articles.scaffold import PLACEHOLDER
from kb.errors import ArticleError
from kb.logs import conditions
from kb.logs.quantities import quantities
from kb.records import Article, IssueRecord, Lang, Problem
from kb.scraped import parse
from kb.text import HAN, HAN_CHAR
from kb.text.fences import prose_lines
from kb.text.steps import BASES, steps

__all__ = ["HAS_FOLD", "IS_DRAFT", "Problem", "Tally", "review", "tally"]

IS_DRAFT = "is a draft; remove `status: draft` after the review"
"""the message of the problem that every draft has"""

HAS_FOLD = "still holds the thread of its draft; remove the comment at its end (`kb review` does when it accepts)"
"""the message for an article whose status was removed by hand"""

_STEP = re.compile(r"^[ \t]*(?:[-*+]|\d{1,3}[.)、]|\|)|`|^[ \t]*~~~|https?://", re.MULTILINE)
_LINK = re.compile(r"(?:\]\(|^\s{0,3}\[[^\]\n]{1,100}\]:[ ]?)<?([^()\s:<>#]{1,200}\.md)(?=[#>)\s]|$)", re.IGNORECASE)
_URL = re.compile(r"https?://[\w-]{1,63}(?:\.[\w-]{1,63}){1,10}(?::\d{1,5})?(?:[/?#][^\s<>\"]*)?$", re.IGNORECASE)
_CODE = re.compile(r"`[^`\n]{0,300}`")
_ISSUE = re.compile(r"`([\w-]{1,100})#(\d{1,4})(?:/\w\w)?`")
_WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+")

_HARMFUL = re.compile(
    r"\brm\s+-\w*[rf]|\breboot\b(?!=)|\bkill\s+-(?:9|KILL)|\bpkill\b|\bgit\s+reset\s+--hard|\bprune\b|\bmkfs\b|"
    r"--gpu-reset|\bdrop_caches\b|\bsystemctl\s+(?:restart|stop)\s+docker|--privileged\b|trust[-_]remote[-_]code"
)
"""commands that destroy something, stop somebody else's work, or let strangers' code in"""

_OPEN_ENDED = re.compile(
    r">=?|\+$|\b(?:and|or) (?:newer|later|up|above)\b|\bonwards\b|\b(?:all|any|every) versions?\b|"
    r"以上|及以后|之后|起$|所有版本|各版本"
)
_ENDED = re.compile(r"<|\b(?:to|up to|until|through|checked|as of)\b|[–至到]|核对|查证|截至|20\d\d")

_MOST_IN_SHORT: dict[Lang, int] = {"en": 260, "zh": 140}  # characters; two lines of a terminal

_SHINGLE = 5  # words
_HOLDERS = 8  # of the records with a shingle, how many are compared with a later one
_ALIKE = 0.5  # Jaccard similarity of the shingles from which two issues are probably one


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts for one language; with `lang` "all", for all languages."""

    lang: str
    articles: int
    issues: int
    records: int
    projects: int
    with_errors: int
    """records with a literal error line"""
    without_errors: int
    with_fix: int
    mean_words: float
    """mean number of words in symptom, cause and fix; a Chinese character counts as a word"""
    sources: int
    """different ones"""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class _Folder:
    """`articles`: each with its text. `unread`: paths that cannot be parsed. `problems`: those of the reading."""

    def __init__(self, folder: Path) -> None:
        self.articles: list[tuple[Article, str]] = []
        self.unread: set[str] = set()
        self.problems = [Problem(s.path, None, "warning", f"skipped: {s.reason}") for s in list_articles(folder)[1]]
        for path, data in read_articles(folder):
            try:
                if isinstance(data, ArticleError):
                    raise data
                article, text = parse(data, path=path), data.decode("utf-8-sig", "replace")
                if has_fold(text) and not article.draft:
                    self.problems.append(Problem(path, None, "error", HAS_FOLD))
                self.articles.append((article, "\n".join(without_fold(text.split("\n")))))
            except ArticleError as error:
                self.unread.add(path)
                draft = isinstance(data, bytes) and is_draft(data)
                self.problems.append(Problem(path, error.line, "warning" if draft else "error", error.message))
        self.articles.sort(key=lambda pair: pair[0].draft)  # drafts last: of two that clash, they get the problem

    @property
    def records(self) -> list[IssueRecord]:
        return [record for article, _ in self.articles for record in article.records]


def review(folder: Path) -> list[Problem]:
    """All problems of the articles below `folder`, by path and line. Problems of drafts are warnings."""
    here = _Folder(folder)
    problems = here.problems
    twins: dict[str, dict[Lang, Article]] = defaultdict(dict)
    path_of: dict[str, str] = {}
    unfinished: set[str] = set()
    for article, text in here.articles:
        twins[article.slug].setdefault(article.lang, article)
        left = list(_left_to_write(article.path, text))
        unfinished |= {problem.path for problem in left}
        problems += [*left, *_within(article)]
        for record in article.records:
            first = path_of.setdefault(record.id.casefold(), article.path)
            if first != article.path:
                problems.append(_at(record, "error", f"{record.id} is in {first} already"))
    known = {article.path for article, _ in here.articles} | here.unread
    for article, text in here.articles:
        problems += _links(article, text, known, twins)
    unread = {PurePosixPath(path).stem for path in here.unread}
    for slug in sorted(twins.keys() - unread):
        if len({article.draft for article in twins[slug].values()}) == 1:
            problems += _between(slug, twins[slug])
    problems += _spellings(here.records)
    problems += _alike([record for record in here.records if record.source.path not in unfinished])
    issues = {record.issue for record in here.records}
    problems += [problem for record in here.records for problem in _branches(record, issues)]
    if any(record.summary for record in here.records):  # a folder of pages in other forms has none at all
        bare = (record for record in here.records if not record.summary)
        problems += [_at(record, "warning", f"{record.id} does not say it in short (一句话)") for record in bare]
    drafts = {article.path for article, _ in here.articles if article.draft}
    problems = [replace(f, level="warning") if f.path in drafts else f for f in problems]
    duplicates = {article.path: peek(text.encode()) for article, text in here.articles if article.draft}
    duplicates = {path: front for path, front in duplicates.items() if front.is_duplicate}
    problems = [one for one in problems if one.path not in duplicates]
    for path, front in duplicates.items():
        if front.duplicate_of not in {record.issue for record in here.records}:
            what = front.duplicate_of or "no issue"
            problems.append(Problem(path, None, "warning", f"is a duplicate of {what}, which is not there"))
    problems += [Problem(path, None, "warning", IS_DRAFT) for path in drafts - duplicates.keys()]
    return sorted(problems, key=lambda f: (f.path, f.line or 0))


def tally(folder: Path) -> list[Tally]:
    """The counts for each language with articles, then for all. Unreadable articles do not count."""
    here = _Folder(folder)
    langs = sorted({article.lang for article, _ in here.articles})
    groups = [(str(lang), [a for a, _ in here.articles if a.lang == lang]) for lang in langs]
    return [_tally(lang, group) for lang, group in [*groups, ("all", [a for a, _ in here.articles])]]


def _tally(lang: str, articles: Sequence[Article]) -> Tally:
    records = [record for article in articles for record in article.records]
    words = sum(len(_WORD.findall(f"{r.symptom}\n{r.cause}\n{r.fix}")) for r in records)
    return Tally(
        lang=lang,
        articles=len(articles),
        issues=len({record.issue for record in records}),
        records=len(records),
        projects=len({record.project.casefold() for record in records if record.project}),
        with_errors=sum(bool(record.errors) for record in records),
        without_errors=sum(not record.errors for record in records),
        with_fix=sum(bool(record.fix) for record in records),
        mean_words=round(words / max(1, len(records)), 1),
        sources=len({source for record in records for source in record.sources}),
    )


def _at(record: IssueRecord, level: Literal["error", "warning"], message: str) -> Problem:
    return Problem(record.source.path, record.source.first_line, level, message)


def _within(article: Article) -> Iterator[Problem]:
    if not article.records:
        yield Problem(article.path, None, "warning", "no issue was found here; see `kb parse --explain`")
    for remark in article.remarks:
        if remark.kind == "front-matter" and not remark.text.startswith("#"):
            yield Problem(article.path, remark.line, "error", f"front matter: {remark.text}")
    for record in article.records:
        if not record.symptom and not record.errors:
            yield _at(record, "error", f"{record.id} has no symptom and no error line")
        elif not record.errors and not "".join(prose_lines(record.symptom)).strip():
            yield _at(record, "error", f"{record.id} has neither an error line nor a description")
        if not record.fix:
            yield _at(record, "warning", f"{record.id} has no fix")
        elif not _STEP.search(record.fix):
            yield _at(record, "warning", f"the fix of {record.id} names no step: no list, command or setting")
        if not record.cause:
            yield _at(record, "warning", f"{record.id} has no cause")
        if not record.project:
            yield _at(record, "warning", f"{record.id} names no project")
        yield from _conditions(record)
        yield from _summary_and_steps(record)
        text = f"{record.symptom}\n{record.fix}"
        if article.lang == "zh" and text.strip() and not HAN_CHAR.search("".join(prose_lines(text))):
            yield _at(record, "warning", f"{record.id} has no Chinese character")
    for record in article.records[:1]:  # sources are in the front matter, the same for all records
        if not record.sources:
            yield _at(record, "warning", "no source is named")
        for source in record.sources:
            if not _URL.match(source):
                yield _at(record, "error", f"the source {source!r} is no URL")


def _conditions(record: IssueRecord) -> Iterator[Problem]:
    """Conditions that no program can check, or that rule out the issue itself."""
    if record.only_when and not record.conditions:
        yield _at(record, "error", f"{record.id} has no condition below Only when (判别): no bullet")
    for condition in record.conditions:
        try:
            conditions.parse(condition)
        except ValueError as error:
            yield _at(record, "error", f"a condition of {record.id} cannot be read: {error}")
    if conditions.evaluate(record.conditions, quantities("\n".join(record.errors))) is False:
        yield _at(record, "error", f"the error lines of {record.id} do not meet its conditions")


def _summary_and_steps(record: IssueRecord) -> Iterator[Problem]:
    """Of an issue that begins with what to try first: whether it is short, and what stands behind each step."""
    if not record.summary:
        return
    most = _MOST_IN_SHORT[record.lang]
    if len(record.summary) > most:
        yield _at(record, "warning", f"{record.id}: In short has {len(record.summary)} characters; at most {most}")
    for version in record.versions:
        if _OPEN_ENDED.search(version) and not _ENDED.search(version):
            yield _at(
                record, "warning", f"{record.id}: the versions {version!r} have no end; with what were they checked?"
            )
    for number, step in enumerate(steps(record.fix), 1):
        if step.claims and step.basis is None:
            marks = " ".join(f"*({mark})*" for mark in BASES if mark.isascii() == (record.lang == "en"))
            yield _at(record, "warning", f"{record.id}: step {number} does not say what stands behind it: {marks}")
        if (found := _HARMFUL.search(step.text)) and "**" not in step.text:
            what = " ".join(found[0].split())
            yield _at(record, "warning", f"{record.id}: step {number} has `{what}` and no **warning** in bold")


def _branches(record: IssueRecord, issues: set[str]) -> Iterator[Problem]:
    """Of an issue that leads to others: that a program can follow it."""
    if record.triage and not record.branches:
        yield _at(record, "error", f"{record.id} leads nowhere: no bullet of Which one is it links an issue")
    if record.branches and not any(branch.condition for branch in record.branches):
        yield _at(record, "warning", f"{record.id}: no way out begins with a condition that a program can check")
    for branch in record.branches:
        if branch.issue not in issues:
            yield _at(record, "error", f"{record.id} leads to {branch.issue}, which is not there")
        elif branch.issue == record.issue:
            yield _at(record, "error", f"{record.id} leads to itself")
        if branch.condition:
            try:
                conditions.parse(branch.condition)
            except ValueError as error:
                yield _at(record, "error", f"a condition of {record.id} cannot be read: {error}")


def _left_to_write(path: str, text: str) -> Iterator[Problem]:
    for number, line in enumerate(text.splitlines(), 1):
        if left := PLACEHOLDER.search(line):
            yield Problem(path, number, "error", f"is left to write: {left[0]}")


def _links(article: Article, text: str, known: set[str], twins: dict[str, dict[Lang, Article]]) -> Iterator[Problem]:
    """Links to articles that do not exist, and ids of issues that their article does not have."""
    here = PurePosixPath(article.path).parent
    for number, line in enumerate(prose_lines(text), 1):
        for link in _LINK.finditer(_CODE.sub("``", line)):
            parts: list[str] = []
            for part in (here / link[1]).parts:
                if part == "..":
                    parts = parts[:-1]
                else:
                    parts.append(part)
            if "/".join(parts) not in known:
                yield Problem(article.path, number, "error", f"the link to {link[1]} leads nowhere")
        for name in _ISSUE.finditer(line):
            articles = twins.get(name[1], {}).values()
            if articles and not any(1 <= int(name[2]) <= len(other.records) for other in articles):
                yield Problem(article.path, number, "error", f"{name[1]} has no issue {name[2]}")


def _between(slug: str, translations: dict[Lang, Article]) -> Iterator[Problem]:
    if len(translations) == 1:
        (article,) = translations.values()
        other = "zh" if article.lang == "en" else "en"
        yield Problem(article.path, None, "warning", f"{slug} has no translation in {other}")
        return
    en, zh = translations["en"], translations["zh"]
    if len(en.records) != len(zh.records):
        yield Problem(zh.path, None, "error", f"{len(zh.records)} issues here, {len(en.records)} in {en.path}")
    for one, two in zip(en.records, zh.records, strict=False):
        if one.project != two.project:
            yield _at(two, "warning", f"the project is {two.project} here, {one.project} in {en.path}")
        if one.branches != two.branches:
            yield _at(two, "error", f"{two.id} and {one.id} lead to different issues, or on different conditions")
        if bool(one.summary) != bool(two.summary):
            yield _at(two if one.summary else one, "warning", f"only one language of {one.issue} has In short (一句话)")
        if [step.basis for step in steps(one.fix)] != [step.basis for step in steps(two.fix)] and one.summary:
            yield _at(
                two, "warning", f"the steps of {two.id} and {one.id} have different marks of what stands behind them"
            )
        if set(one.conditions) != set(two.conditions):
            yield _at(two, "error", f"{two.id} and {one.id} have different conditions")
        if bool(one.errors) != bool(two.errors):
            bare, full = (one, two) if two.errors else (two, one)
            yield _at(bare, "warning", f"{bare.id} has no error line, {full.id} has")
        elif one.errors and not {*map(str.strip, one.errors)} & {*map(str.strip, two.errors)}:
            yield _at(two, "warning", f"{two.id} shares no error line with {one.id}; are the issues in the same order?")


def _spellings(records: Sequence[IssueRecord]) -> Iterator[Problem]:
    """Projects with two spellings: the rarer one is the mistake."""
    counts = Counter(record.project for record in records if record.project)
    usual: dict[str, str] = {}
    for name in sorted(counts, key=lambda name: (-counts[name], name)):
        usual.setdefault(name.casefold(), name)
    for record in records:
        if record.project and usual[record.project.casefold()] != record.project:
            yield _at(record, "warning", f"{record.project} is written {usual[record.project.casefold()]} elsewhere")


def _alike(records: Sequence[IssueRecord]) -> Iterator[Problem]:
    """Records whose text is mostly that of an earlier record of another issue in the same language."""
    shingles: list[set[int]] = []
    holders: dict[int, list[int]] = defaultdict(list)
    for row, record in enumerate(records):
        text = f"{record.title}\n{record.symptom}\n{record.cause}\n{record.fix}"
        words = [word.casefold() for word in _WORD.findall(text)]
        shingles.append({hash(tuple(words[at : at + _SHINGLE])) for at in range(max(1, len(words) - _SHINGLE + 1))})
        shared: Counter[int] = Counter()
        for run in shingles[row]:
            shared.update(holders[run])
            if len(holders[run]) < _HOLDERS:  # a common shingle costs no more than a rare one
                holders[run].append(row)
        near = [r for r, _ in shared.most_common(_HOLDERS)]
        near = [r for r in near if records[r].lang == record.lang and records[r].issue != record.issue]
        for other in near[:1]:
            alike = len(shingles[row] & shingles[other]) / len(shingles[row] | shingles[other])
            if alike >= _ALIKE:
                same = records[other].id
                yield _at(record, "warning", f"{record.id} is {alike:.0%} the same as {same}; one of them is enough")
