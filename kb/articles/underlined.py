"""A heading underlined with tildes, as reStructuredText has it: in Markdown they open a fence."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

__all__ = ["without_tildes"]

_TILDES = re.compile(r"~{4,200}\s{0,4}$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_AS_LONG = 3  # columns by which an underline may differ from its title


def without_tildes(lines: Sequence[str]) -> list[str]:
    """As many lines as came in, with `^^^^` for an underline of tildes, which Markdown leaves alone: a line of them
    under a line about as long that stands alone, with nothing right below it that another such line closes."""
    done = list(lines)
    opened = ""
    for n, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence is None:
            continue
        if opened:
            if fence[1].startswith(opened) and not line.strip(f" {opened[0]}"):
                opened = ""
        elif _TILDES.match(line) and n and _is_title(lines, n) and not _is_closed(lines, n):
            done[n] = "^" * len(line.rstrip())
        else:
            opened = fence[1]
    return done


def _is_title(lines: Sequence[str], n: int) -> bool:
    """Is the line above line `n` a title that this one underlines?"""
    title = lines[n - 1].strip()
    width = len(title.encode("gbk", "replace"))  # a Chinese character takes two columns
    alone = n == 1 or not _says(lines[n - 2])
    return alone and len(title) >= 3 and abs(width - len(lines[n].rstrip())) <= _AS_LONG


def _is_closed(lines: Sequence[str], n: int) -> bool:
    """Is what stands right below line `n` closed by such a line, as a fence is? Every fence ends the look, so all looks
    together take linear time."""
    below = (lines[k] for k in range(n + 1, len(lines)))
    return any(_FENCE.match(line) for line in takewhile(str.strip, below))


def _says(line: str) -> bool:
    return any(char.isalnum() for char in line)
