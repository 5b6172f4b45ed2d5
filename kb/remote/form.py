"""An answer of `/api/search` and `/api/issues` as values, checked field by field: it comes from somebody else.

Raises KeyError, TypeError or ValueError for every other form.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from kb.records import Evidence, Features, Hit, IssueRecord, Lang, Query, SearchResult, Verdict

__all__ = ["number", "result", "text"]

_TEXTS = ("summary", "symptom", "cause", "fix", "triage", "only_when", "confusable")


def result(form: Mapping[str, Any], query: Query, base: str) -> SearchResult:
    """The answer to `query`; its hits are said to come from `base`."""
    hits = tuple(hit(one, rank, base) for rank, one in enumerate(form["results"], 1))
    said = form["verdict"]
    if said not in ("known", "likely", "unknown") or (said != "unknown" and not hits):
        raise ValueError("no verdict")
    verdict: Verdict = said
    likely = tuple(text(one) for one in form["likely"])
    return SearchResult(query, verdict, hits, text(form["snapshot"]), (base,), number(form["took_ms"]), query, likely)


def hit(form: Mapping[str, Any], rank: int, base: str) -> Hit:
    """One result of `/api/search`."""
    path, (first, last) = text(form["path"]), form["lines"]
    folder, _, below = path.partition("/")
    lang, issue = _lang(form["lang"]), text(form["issue"])
    record = IssueRecord.from_dict(
        {
            "id": f"{issue}/{lang}",
            "issue": issue,
            "lang": lang,
            "conditions": (),
            "branches": (),
            "aliases": (),
            "source": {"path": below, "first_line": first, "last_line": last},
            "updated": form.get("updated", ""),
            **{name: form[name] for name in ("project", "title", *_TEXTS, "errors", "versions", "tags", "sources")},
        }
    )
    told = {"body_sim": number(form["similarity"]), "idf_coverage": number(form["idf_coverage"])}
    return Hit(
        rank=rank,
        issue=issue,
        record=record,
        score=number(form["score"]),
        confidence=min(max(number(form["confidence"]), 0.0), 1.0),
        features=Features(**{**dict.fromkeys(Features.__slots__, 0.0), **told}),
        evidence=Evidence(**dict.fromkeys(Evidence.__slots__, 0.0)),
        ruled_out=False,
        leads_to=tuple(text(one) for one in form["leads_to"]),
        matched=tuple(text(one) for one in form["matched"]),
        base=base,
        folder=folder,
    )


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no text")
    return value


def _lang(value: Any) -> Lang:
    if value not in ("en", "zh"):
        raise ValueError("no language")
    found: Lang = value
    return found


def number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError("no number")
    return float(value)
