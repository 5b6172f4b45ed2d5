"""Symptoms in one list and fixes in another: which fix belongs to which symptom."""

from __future__ import annotations

import pytest

from kb.scraped.pairing import pair

SYMPTOMS = ["the replica lags behind its leader", "certificate rejected by the browser", "显存不足，训练退出"]


@pytest.mark.parametrize(
    ("fixes", "places"),
    [
        (
            [
                "renew the certificate the browser shows",
                "调小批大小，显存不足时退出",
                "restart the replica and its leader",
            ],
            [1, 2, 0],
        ),
        (["do this", "do that", "do the other"], [0, 1, 2]),  # no word in common: the order of the page
        (["do this"], [0]),
        (["1", "2", "3", "4"], [0, 1, 2, None]),  # one fix too many
        ([], []),
    ],
)
def test_fixes_find_their_symptoms(fixes: list[str], places: list[int | None]) -> None:
    assert pair(SYMPTOMS, fixes) == places
