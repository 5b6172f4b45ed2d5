"""Here is a block of a log; give me the lines that hold the words of a fingerprint. Nothing else happens to most of a log."""

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
        # The Latin words that a line with a fingerprint must hold, by one of them; of a fingerprint without any, a Chinese character.
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
        """The numbers of these lines, from 0."""
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
