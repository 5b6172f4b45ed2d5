"""Why a hit has its confidence: what speaks for it and against it, for people and as JSON.

In: the query as it was read, and a hit. Out: each kind of evidence with its value and with what it adds to the log odds
of being right, compared with an average question; the conditions of the issue, and whether they hold; the codes, GPUs
and libraries in which the question and the issue disagree.
"""

from __future__ import annotations

from typing import Any

from kb.brief import LABELS, percent
from kb.index.passages import lexical_text
from kb.logs.codes import particulars
from kb.logs.conditions import holds
from kb.logs.quantities import Quantities, quantities
from kb.records import Hit, Lang, Query, SearchResult
from kb.search.verdict import contributions, curve_for

__all__ = ["EVIDENCE", "answer_with_why", "why", "why_lines"]

EVIDENCE: dict[Lang, dict[str, str]] = {
    "en": {
        "lead": "its score, above the next issue's",
        "lead_over_rest": "its score, above the mean of the next three",
        "described_lead": "likeness of title and symptom, above the next issue's",
        "sentence_lead": "likeness of the sentences, above the next issue's",
        "confusable_lead": "likeness to what it is not to be confused with, above that to itself",
        "own_terms": "how many words agree that are not what any program may print",
        "own_information": "how much these words say",
        "title_coverage": "share of the title that the question says",
        "product_unsaid": "the question names no project of the issue",
        "component_share": "share of the projects in the question that the issue names",
        "confusable_information": "words that stand only in what it is not to be confused with",
        "aligned_coverage": "share of the question that the issue says, in the same or other words",
        "alias_alignment": "agreement with the nearest phrasing",
        "particulars_shared": "codes, GPUs and libraries that both name",
        "particulars_in_conflict": "codes, GPUs and libraries in which they disagree",
    },
    "zh": {
        "lead": "得分比下一个问题高出多少",
        "lead_over_rest": "得分比其后三个问题的平均值高出多少",
        "described_lead": "与标题、现象的相似度，比下一个问题高出多少",
        "sentence_lead": "逐句的相似度，比下一个问题高出多少",
        "confusable_lead": "更像“容易混淆”里的问题、而不像它自己的程度",
        "own_terms": "吻合的词有多少（不算任何程序都可能打印的话）",
        "own_information": "这些词的信息量",
        "title_coverage": "标题中被提问说到的比例",
        "product_unsaid": "提问里没有提到文章的项目",
        "component_share": "提问里的项目名中被文章提到的比例",
        "confusable_information": "只见于“容易混淆”的词",
        "aligned_coverage": "提问中被文章以相同或不同的词说到的比例",
        "alias_alignment": "与最接近的常见问法的吻合程度",
        "particulars_shared": "双方都提到的错误码、GPU、动态库",
        "particulars_in_conflict": "双方说法不同的错误码、GPU、动态库",
    },
}
"""what each name of `kb.records.Evidence` means, in plain words"""

_WORDS: dict[Lang, dict[str | bool | None, str]] = {
    "en": {
        "why": "Why {issue} has confidence {percent}",
        "for": "for    ",
        "against": "against",
        "condition": "condition {condition}: ",
        True: "holds",
        False: "does not hold",
        None: "the question does not say",
        "conflict": "{kind}: the question has {question}, the issue {issue}",
        "ruled out": "ruled out: a number in the question excludes it",
        "matched": "matched: ",
        "voices": "people: {helped:g} say it helped, {did_not_fit:g} that it did not fit; {before} without them",
    },
    "zh": {
        "why": "{issue} 的置信度为 {percent}，依据如下",
        "for": "支持",
        "against": "反对",
        "condition": "判别条件 {condition}：",
        True: "成立",
        False: "不成立",
        None: "提问里没有这个数值",
        "conflict": "{kind}：提问中是 {question}，文章中是 {issue}",
        "ruled out": "已排除：提问里的数值与判别条件不符",
        "matched": "匹配：",
        "voices": "用户反馈：{helped:g} 人说有用，{did_not_fit:g} 人说不符；不计反馈时为 {before}",
    },
}
_LEAST = 0.1  # what counts less is left out of the text


def answer_with_why(result: SearchResult) -> dict[str, Any]:
    """The public JSON form of the answer, each result with its `why`."""
    form = result.as_dict()
    for one, hit in zip(form["results"], result.hits, strict=True):
        one["why"] = why(result.read_as, hit)
    return form


def why(query: Query, hit: Hit) -> dict[str, Any]:
    """The public JSON form; the evidence that counts most comes first."""
    counted = contributions(
        hit.evidence, curve_for(pasted=bool(query.signatures), phrasings=hit.evidence.lists_phrasings)
    )
    return {
        "evidence": {
            name: {"value": round(getattr(hit.evidence, name), 4), "weight": round(counted[name], 4)}
            for name in sorted(counted, key=lambda name: -abs(counted[name]))
        },
        "conditions": _conditions(hit, quantities(query.text)),
        "conflicts": _conflicts(query, hit),
        "ruled_out": hit.ruled_out,
        "voices": None if hit.voices is None else {n: round(v, 4) for n, v in hit.voices._asdict().items()},
    }


def why_lines(query: Query, hit: Hit) -> list[str]:
    """The same for a person, in the language of the question."""
    words, names, found = _WORDS[query.lang], EVIDENCE[query.lang], why(query, hit)
    lines = [
        f"{words['for' if one['weight'] > 0 else 'against']}  {one['weight']:+.2f}  {names[name]}: {one['value']:.2f}"
        for name, one in found["evidence"].items()
        if abs(one["weight"]) >= _LEAST
    ]
    lines += [
        words["condition"].format(condition=condition) + words[held] for condition, held in found["conditions"].items()
    ]
    lines += [
        words["conflict"].format(kind=kind, question=", ".join(one["question"]), issue=", ".join(one["issue"]))
        for kind, one in found["conflicts"].items()
    ]
    if hit.ruled_out:
        lines.append(words["ruled out"])
    if hit.voices is not None:
        said = {**hit.voices._asdict(), "before": percent(hit.voices.before)}
        lines.append(words["voices"].format(**said))
    if hit.matched:
        lines.append(words["matched"] + ", ".join(hit.matched))
    first = words["why"].format(issue=hit.issue, percent=percent(hit.confidence))
    return [first + LABELS[query.lang]["colon"].rstrip(), *("  " + line for line in lines)]


def _conditions(hit: Hit, found: Quantities) -> dict[str, bool | None]:
    """Each condition and whether it holds; None when the question does not print the number."""
    told: dict[str, bool | None] = {}
    for condition in hit.record.conditions:
        try:
            told[condition] = holds(condition, found)
        except ValueError:  # it cannot be read; `kb check` says so
            told[condition] = None
    return told


def _conflicts(query: Query, hit: Hit) -> dict[str, dict[str, list[str]]]:
    """Kinds of codes, GPUs and libraries of which the question and the issue name different ones."""
    asked = particulars("\n".join((*query.signatures, query.prose)))
    told = particulars(lexical_text(hit.record))
    agreeing = {kind for kind, _ in asked & told}
    kinds = sorted({kind for kind, _ in asked} & {kind for kind, _ in told} - agreeing)
    return {
        kind: {"question": sorted(v for k, v in asked if k == kind), "issue": sorted(v for k, v in told if k == kind)}
        for kind in kinds
    }
