"""What a copy button copies: the command that changes something."""

from __future__ import annotations

from dataclasses import replace

import pytest
from conftest import EMPTY_RECORD

from kb.brief import cure
from kb.records import Branch

LOOK = "1. Check the versions.\n\n   ```bash\n   pip list\n   ```\n"
CHANGE = "2. Update it.\n\n   **Careful: it ends all jobs.**\n\n   ```bash\n   pip install -U x\n   ```\n"


@pytest.mark.parametrize(
    ("summary", "fix", "code"),
    [
        ("`x` is too old. Update it: `pip install -U x`.", LOOK, "pip install -U x"),
        ("旧版 `x` 有错。看 `df -h`；升级：`pip install -U x`。", LOOK, "pip install -U x"),
        ("It is too old: `pip install -U x`.", "", "pip install -U x"),
        ("`x` is too old. Look with `pip list`.", LOOK + CHANGE, "pip install -U x"),
        ("", LOOK + CHANGE, "pip install -U x"),
        ("", LOOK, "pip list"),
        ("The cause. Use `x`.", "Turn it off and on.", ""),
        ("", "", ""),
    ],
)
def test_the_cure_is_copied_and_not_the_diagnostic(summary: str, fix: str, code: str) -> None:
    assert cure(replace(EMPTY_RECORD, summary=summary, fix=fix))["code"] == code


def test_of_many_causes_one_looks_first() -> None:
    record = replace(EMPTY_RECORD, fix=LOOK + CHANGE, branches=(Branch("", "b#1"),))
    assert cure(record)["code"] == "pip list"


def test_a_warning_stands_with_its_command() -> None:
    found = cure(replace(EMPTY_RECORD, summary="Too old. Do `pip install -U x`.", fix=LOOK + CHANGE))
    assert found["warnings"] == ["Careful: it ends all jobs."]
