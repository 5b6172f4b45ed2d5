"""Articles of every layout, each beside what must be found in it."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from kb.articles import REMARK_KINDS
from kb.records import IssueRecord
from kb.scraped import parse

CASES = Path(__file__).parent / "cases"
NAMES = sorted(path.name.removesuffix(".json") for path in CASES.glob("*.json"))


def plain(text: str) -> str:
    """Without what a reader does not see: white space, code marks, bold, width and case."""
    text = unicodedata.normalize("NFKC", html.unescape(text)).casefold()
    return re.sub(r"\s+", "", text.replace("`", "").replace("**", ""))


def fields_of(record: IssueRecord) -> dict[str, str]:
    return {
        "errors": plain("\n".join(record.errors)),
        "symptom": plain(record.title + "\n" + record.symptom),
        "cause": plain(record.cause),
        "fix": plain(record.fix),
    }


def test_there_are_cases_in_both_languages() -> None:
    assert sum(".zh." in name for name in NAMES) >= 12
    assert sum(".en." in name for name in NAMES) >= 12


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    expected: dict[str, Any] = json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))
    article = parse((CASES / name).read_bytes(), path=name)
    assert len(article.records) == len(expected["records"]), [record.title for record in article.records]
    assert article.lang == name.split(".")[-2]
    for record, wanted in zip(article.records, expected["records"], strict=True):
        found = fields_of(record)
        for field, text in found.items():
            for string in wanted[field]:
                assert plain(string) in text, f"{record.title}: {field} lacks {string!r}"
        for string in wanted["not_fix"]:
            assert plain(string) not in found["fix"], f"{record.title}: fix holds {string!r}"
        if wanted.get("no_fix"):
            assert not record.fix
        if expected["project"]:
            assert record.project is not None
            assert record.project.casefold() == expected["project"].casefold()
    everything = "".join("".join(fields_of(record).values()) for record in article.records)
    for string in expected["absent"]:
        assert plain(string) not in everything, f"page boilerplate in a record: {string!r}"
    assert {remark.kind for remark in article.remarks} <= set(REMARK_KINDS)


@pytest.mark.parametrize("name", NAMES)
def test_records_say_where_they_stand(name: str) -> None:
    data = (CASES / name).read_bytes()
    article = parse(data, path=name)
    lines = data.decode().split("\n")
    for number, record in enumerate(article.records, 1):
        assert record.issue == f"{article.slug}#{number}"
        assert record.id == f"{record.issue}/{record.lang}"
        assert 1 <= record.source.first_line <= record.source.last_line <= len(lines)
        assert "\n" not in record.title
