"""The shapes of all answers, for the contract (`openapi`). Answers are not validated when they are sent: a test
compares them with these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel

from kb.records import IssueRecord, Lang, Verdict
from kb.search.verdict import MOST_LIKELY
from kb.serve.nodes import TAGS

__all__ = ["Answer", "Error", "Health", "Issue", "Issues", "Login", "Projects", "Report", "ShortAnswer"]

Line = Annotated[int, Field(ge=1)]


Day = Annotated[str, Field(description="When the article was last gone through, as 2026-01-31; may be empty.")]
Verdicts = Annotated[
    Verdict,
    Field(description="known; likely: it may be one of those named in `likely`; unknown: the results are the nearest."),
]
Likely = Annotated[list[str], Field(max_length=MOST_LIKELY, description="Issues, the best first.")]


class _Shape(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


class Element(_Shape):
    tag: Annotated[str, Field(json_schema_extra={"enum": list(TAGS)})]
    children: list[str | Element]
    href: str | None = None
    lang: str | None = None
    start: Annotated[int, Field(ge=0)] | None = None


class Tree(_Shape):
    summary: list[str | Element]
    symptom: list[str | Element]
    cause: list[str | Element]
    fix: list[str | Element]
    triage: list[str | Element]
    only_when: list[str | Element]
    confusable: list[str | Element]


OptionalTree = Annotated[Tree | None, Field(description="Only with render=tree.")]


class Cure(_Shape):
    """The one command or setting to try first, in plain text; `code` is empty where the fix has none."""

    says: str
    code: str
    warnings: list[str]


OptionalCure = Annotated[Cure | None, Field(description="Only with render=tree.")]


class Counted(_Shape):
    value: float
    weight: Annotated[float, Field(description="What it adds to the log odds of being right.")]


class Disagreement(_Shape):
    question: list[str]
    issue: list[str]


class VoicesOf(_Shape):
    helped: float
    did_not_fit: float
    before: Annotated[float, Field(ge=0, le=1, description="The confidence without them.")]


class Why(_Shape):
    evidence: Annotated[dict[str, Counted], Field(description="By name; what counts most comes first.")]
    conditions: Annotated[dict[str, bool | None], Field(description="Does it hold? Null: the question does not say.")]
    conflicts: Annotated[
        dict[str, Disagreement], Field(description="Kinds of codes, GPUs and libraries in which both differ.")
    ]
    ruled_out: Annotated[bool, Field(description="A condition does not hold.")]
    voices: Annotated[VoicesOf | None, Field(description="What people said of it; null: nothing that counts.")]


class Result(_Shape):
    rank: Line
    issue: str
    lang: Lang
    project: str | None
    title: str
    summary: Annotated[str, Field(description="The cause in a sentence and what to try first; may be empty.")]
    symptom: Annotated[str, Field(description="Markdown, as are cause and fix; cause and fix may be empty.")]
    cause: str
    fix: str
    triage: Annotated[str, Field(description="Which circumstance leads to which issue; empty for most.")]
    leads_to: Annotated[list[str], Field(description="The issues of `triage` whose condition the question meets.")]
    only_when: Annotated[str, Field(description="By which numbers of its message one knows it; may be empty.")]
    confusable: Annotated[str, Field(description="What looks alike and is another issue; may be empty.")]
    errors: list[str]
    versions: list[str]
    tags: list[str]
    sources: list[str]
    updated: Day
    base: Annotated[str, Field(description="The base it comes from: bundled, or the path of another.")]
    path: str
    lines: Annotated[list[Line], Field(min_length=2, max_length=2)]
    score: float
    confidence: Annotated[float, Field(ge=0, le=1)]
    similarity: float
    idf_coverage: float
    matched: list[str]
    tree: OptionalTree = None
    cure: OptionalCure = None
    tells_apart: Annotated[
        str | None, Field(description="Only with render=tree, of a likely issue: by what one sees that it is this one.")
    ] = None
    why: Annotated[Why | None, Field(description="Only with why=true.")] = None


class Silent(_Shape):
    base: str
    why: str


class _Answered(_Shape):
    lang: Lang
    answered: Annotated[bool, Field(description="The verdict is known: the first result is the answer.")]
    verdict: Verdicts
    likely: Likely
    took_ms: float
    snapshot: str
    bases: Annotated[list[str], Field(description="Those that answered, in the order in which they are asked.")]
    silent: Annotated[list[Silent], Field(description="Those that did not.")]


class Answer(_Answered):
    results: list[Result]


class Try(_Shape):
    says: Annotated[str, Field(description="What to do; may be empty.")]
    warnings: Annotated[list[str], Field(description="What to know before: show them above the code.")]
    basis: Annotated[str, Field(description="What stands behind it, as the article says: reproduced, reported, ...")]
    code: Annotated[str, Field(description="The commands; may be empty.")]
    more: Annotated[bool, Field(description="The step has more code than is shown here.")]


class Short(_Shape):
    issue: str
    lang: Lang
    project: str | None
    title: str
    verdict: Annotated[Verdict, Field(description="Of this issue by itself.")]
    confidence: Annotated[float, Field(ge=0, le=1)]
    summary: Annotated[str, Field(description="The cause in a sentence; may be empty.")]
    try_: Annotated[list[Try], Field(alias="try", description="The first steps of the fix; empty: none is known.")]


class ShortResult(Short):
    rank: Line


class ShortAnswer(_Answered):
    """With brief=true."""

    results: list[ShortResult]


class _Place(_Shape):
    first_line: Annotated[int, Field(ge=1, description="As an editor and `grep -n` count.")]
    last_line: Line
    count: Annotated[int, Field(ge=1, description="How many lines say so.")]
    processes: Annotated[int, Field(ge=1, description="How many ranks or workers wrote them.")]
    text: Annotated[str, Field(description="The first of these lines; a long one is cut.")]


class Finding(_Place):
    issue: str
    lang: Lang
    project: str | None
    title: str
    verdict: Literal["known", "likely"]
    confidence: Annotated[float, Field(ge=0, le=1)]
    summary: str
    cause: str
    fix: str
    sources: list[str]
    updated: Day
    base: str


class ShortFinding(Short, _Place):
    """With brief=true."""


class Report(_Shape):
    """As an element of `logs` in `kb scan --json`."""

    verdict: Annotated[Verdict, Field(description="That of the surest finding; unknown: nothing was found.")]
    likely: Annotated[list[str], Field(description="The issues that are only likely, by first line.")]
    lines: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=0, description="Unpacked.")]
    took_ms: float
    snapshot: str
    findings: Annotated[list[Finding] | list[ShortFinding], Field(description="By first line; each issue once.")]


@dataclass(frozen=True)
class Translation(IssueRecord):
    """One issue in one language."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    tree: OptionalTree = None
    cure: OptionalCure = None


class Issue(_Shape):
    issue: str
    snapshot: str
    translations: Annotated[list[Translation], Field(min_length=1)]


class Title(_Shape):
    issue: str
    lang: Lang
    project: str | None
    title: str
    tags: list[str]


class Issues(_Shape):
    snapshot: str
    issues: list[Title]


class Project(_Shape):
    project: str
    issues: Line


class Projects(RootModel[list[Project]]):
    """The answer of `/api/projects`."""


class Health(_Shape):
    status: Annotated[Literal["ok", "stale"], Field(description="stale: an older snapshot answers; see `why`.")]
    why: Annotated[str | None, Field(description="Why the index on the disk cannot be used.")]
    version: str
    snapshot: str
    uptime_s: float
    bases: Annotated[list[str], Field(description="Those that answer; of a folder only its name.")]
    silent: Annotated[list[str], Field(description="Those that do not.")]


class Vote(_Shape):
    issue: str
    verdict: Literal["helped", "did_not_fit", "none"]
    helped: Annotated[float, Field(ge=0, description="Voices for this question that say so.")]
    did_not_fit: Annotated[float, Field(ge=0)]


class FeedbackState(_Shape):
    on: Annotated[bool, Field(description="Does this server keep votes?")]


class Login(_Shape):
    """The body of `POST /api/session`."""

    token: str


class Error(_Shape):
    error: str
    hint: str | None
