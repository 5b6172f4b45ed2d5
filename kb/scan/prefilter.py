"""Finds the lines of a block of bytes that hold all words of some fingerprint.

This is the first and cheapest step of a scan: most lines of a log end here. It may let through a line that no
fingerprint matches, because word order and gaps are checked later, but it never drops one that a fingerprint matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kb.logs.fingerprints import Fingerprint
from kb.logs.lines import ANSI
from kb.text.decode import decode

__all__ = ["Prefilter"]

_FOLD = bytes(c + 32 if 65 <= c <= 90 else c if 97 <= c <= 122 or c == 10 else 32 for c in range(256))


class Prefilter:
    def __init__(self, fingerprints: Iterable[Fingerprint]) -> None:
        # Anchor -> the sets of Latin words of which a line must hold one. A fingerprint without a Latin word is looked
        # for by its anchor alone, a Chinese character.
        self._needs: dict[bytes, list[frozenset[bytes]]] = {}
        others = set()
        for fingerprint in fingerprints:
            if fingerprint.anchor.isascii():
                words = frozenset(word.encode() for word in fingerprint.words if word.isascii() and word.isalpha())
                self._needs.setdefault(fingerprint.anchor.encode(), []).append(words)
            else:
                others.add(fingerprint.anchor)
        for anchor, needs in self._needs.items():
            self._needs[anchor] = [one for one in set(needs) if not any(other < one for other in needs)]
        self._anchors = frozenset(self._needs)
        self._others = re.compile(f"[{''.join(sorted(others))}]") if others else None

    def candidates(self, block: bytes) -> list[int]:
        """The indices, from 0, of the lines in the block that may match."""
        anchors, needs = self._anchors, self._needs
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        folded = block.replace(b"\\n", b"  ").replace(b"\\t", b"  ") if b"\\" in block else block
        found = []
        for i, line in enumerate(folded.translate(_FOLD).split(b"\n")):
            words = line.split()
            if not anchors.isdisjoint(words):
                present = frozenset(words)
                if any(need <= present for anchor in anchors & present for need in needs[anchor]):
                    found.append(i)
        if self._others and not block.isascii():
            lines = enumerate(block.split(b"\n"))
            found += [i for i, line in lines if not line.isascii() and self._others.search(decode(line))]
        return sorted(set(found))
