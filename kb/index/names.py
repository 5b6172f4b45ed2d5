"""The ids and projects of an index, read without opening it: for what must be quick, such as completion at a prompt.

Loads no numpy and checks no digest: what is offered here is looked up by whatever comes after it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kb.index.snapshot import open_file, read_manifest

__all__ = ["Named", "issues_of", "projects_of"]

# A line of records.jsonl begins with these fields, in the order of `IssueRecord`.
_BEGINNING = re.compile(
    rb'\{"id":"[^"]*","issue":("[^"]*"),"lang":"(en|zh)","project":(?:null|"(?:[^"\\]|\\.)*"),"title":("(?:[^"\\]|\\.)*")'
)


class Named(NamedTuple):
    issue: str
    lang: str
    title: str


def issues_of(index: Path) -> Iterator[Named]:
    """Every record's issue, language and title. Raises OSError, IndexMissing, IndexCorrupt."""
    manifest, _ = read_manifest(index)
    for key, entry in manifest["files"].items():
        if key.partition(".")[0] == "records":
            with open_file(index, entry) as file:
                for line in file:
                    if found := _BEGINNING.match(line):
                        yield Named(json.loads(found[1]), found[2].decode(), json.loads(found[3]))


def projects_of(index: Path) -> list[str]:
    """In their own spelling, sorted. Raises OSError, IndexMissing, IndexCorrupt."""
    manifest, _ = read_manifest(index)
    return [name for name in manifest.get("projects", ()) if isinstance(name, str)]
