"""Finds the lines of a block of bytes that hold all words of some fingerprint.

This is the first and cheapest step of a scan: most lines of a log end here. It may let through a line that no
fingerprint matches, because word order and gaps are checked later, but it never drops one that a fingerprint matches.
"""

from __future__ import annotations

from collections.abc import Iterable

from kb.logs.lines import ANSI
from kb.scan.fingerprints import Fingerprints
from kb.text.decode import decode

__all__ = ["Prefilter"]

_FOLD = bytes(c + 32 if 65 <= c <= 90 else c if 97 <= c <= 122 or c == 10 else 32 for c in range(256))


class Prefilter:
    def __init__(self, fingerprints: Fingerprints, least: float) -> None:
        """`least`: the weight of a fingerprint from which a line is worth a look."""
        self._fingerprints, self._least = fingerprints, least
        self._anchors = frozenset(one.encode() for one in fingerprints.anchors if one.isascii())
        self._others = frozenset(one for one in fingerprints.anchors if not one.isascii())
        self._needs: dict[bytes, dict[frozenset[bytes], list[str]]] = {}
        self._heavy: dict[str, bool] = {}

    def candidates(self, block: bytes) -> list[int]:
        """The indices, from 0, of the lines in the block that may match."""
        anchors = self._anchors
        if b"\x1b" in block:
            block = ANSI.sub(b"", block)
        folded = block.replace(b"\\n", b"  ").replace(b"\\t", b"  ") if b"\\" in block else block
        found = []
        for i, line in enumerate(folded.translate(_FOLD).split(b"\n")):
            words = line.split()
            if not anchors.isdisjoint(words):
                present = frozenset(words)
                if any(
                    need <= present and self._is_heavy(texts)
                    for anchor in anchors & present
                    for need, texts in self._needed(anchor).items()
                ):
                    found.append(i)
        if self._others and not block.isascii():
            lines = enumerate(block.split(b"\n"))
            found += [i for i, line in lines if not line.isascii() and self._is_worth_a_look(decode(line))]
        return sorted(set(found))

    def _needed(self, anchor: bytes) -> dict[frozenset[bytes], list[str]]:
        """The sets of Latin words of which a line with this anchor must hold one, each with the prints it is of."""
        needs = self._needs.get(anchor)
        if needs is None:
            needs = self._needs[anchor] = {}
            for one in self._fingerprints.anchored(anchor.decode()):
                words = frozenset(word.encode() for word in one.words if word.isascii() and word.isalpha())
                needs.setdefault(words, []).append(one.text)
        return needs

    def _is_heavy(self, texts: Iterable[str]) -> bool:
        """Weighs the prints of a line that was met: most are never met."""
        return any(self._fingerprints.weighed(text).weight >= self._least for text in texts)

    def _is_worth_a_look(self, line: str) -> bool:
        """A fingerprint without a Latin word is looked for by its anchor alone, a Chinese character."""
        for one in self._others.intersection(line):
            if one not in self._heavy:
                self._heavy[one] = self._is_heavy(each.text for each in self._fingerprints.anchored(one))
            if self._heavy[one]:
                return True
        return False
