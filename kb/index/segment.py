"""One segment of an index, opened: a set of files that never changes, with the records of some articles.

A small base is one segment. Of a large one an edit adds a small segment, and names the rows that count no more in the
others; a later build joins small segments into larger ones (`kb.index.build`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.arrays import Array, load
from kb.errors import IndexCorrupt
from kb.index import snapshot
from kb.index.header import Rows
from kb.index.lexicon import Lexicon
from kb.index.mapped import Later, are_sound, arrays, content, was_made_here
from kb.index.parts import Parts
from kb.index.passages import View
from kb.index.snapshot import Entry
from kb.index.vectors import Vectors

if TYPE_CHECKING:
    from kb.index.chunk import Chunk
    from kb.index.prints import Prints

__all__ = ["Segment"]


class Segment:
    """Safe to share between threads."""

    def __init__(self, folder: Path, files: Mapping[str, Entry]) -> None:
        """`files`: stem -> what the manifest says. Raises FileNotFoundError when a file has gone, IndexCorrupt, and
        KeyError, ValueError, TypeError or IndexError when a file does not hold what it should."""
        self._folder, self._files = folder, files
        rows = arrays(folder, files["rows"])
        dense = arrays(folder, files["dense"])
        self.rows: Rows = Rows(rows)
        self.lexicon: Lexicon = Lexicon(arrays(folder, files["lexical"]))
        near = self._near(files["near"]) if "near" in files else None
        self._views, self._kinds, self._view_starts = dense["views"], dense["kinds"], dense["starts"]
        self.vectors: Vectors = Vectors(self._views, self._view_starts, self._kinds, near)
        self.records: Parts = Parts(folder, files["records"], rows["starts"], rows["digests"])
        self.profiles: Parts = Parts(folder, files["profiles"], rows["profile_starts"], rows["profile_digests"])
        self._prints = Later(folder, files["prints"])
        self._check()

    def _near(self, entry: Entry) -> Array | None:
        """The file that FAISS parses. It does not defend itself against a malicious one, and whoever wrote the index
        wrote its sha256 as well: that of a stranger is not used, and all vectors are compared."""
        if was_made_here(self._folder, entry["sha256"]):
            return np.frombuffer(content(self._folder, entry), np.uint8)
        logging.getLogger("kb").warning(
            "%s was built by somebody else: it is searched without its FAISS file, which takes longer; "
            "`kb build` or `kb trust` changes that",
            self._folder,
        )
        return None

    def _check(self) -> None:
        """Files may each be whole and still not belong together (mem0 #7117: ids off by n, answers confident)."""
        n = self.size
        agree = self.records.size == self.profiles.size == self.lexicon.postings.size == self.vectors.size == n and (
            are_sound([self._files[stem] for stem in ("rows", "dense", "lexical")], self._is_sound)
        )
        if not agree:
            self.close()
            raise IndexCorrupt("the files of the index do not belong together", path=self._folder, hint="`kb build`")

    def _is_sound(self) -> bool:
        """Looks at every number."""
        kinds = self._kinds
        return (
            (not len(kinds) or 0 <= kinds.min() <= kinds.max() < len(View))
            # All are finite: in the place of np.isfinite, which takes six times as long for half floats.
            and bool(((self._views.view(np.uint16) & 0x7C00) != 0x7C00).all())
            and self.rows.is_sound()
            and self.lexicon.is_sound()
        )

    def verify(self) -> None:
        """Every file, also those of which a search reads parts. Raises FileNotFoundError, IndexCorrupt."""
        for entry in self._files.values():
            content(self._folder, entry)
        _ = self.prints

    @cached_property
    def prints(self) -> Prints:
        """What lines of logs are recognised by: read when a log is. Raises IndexCorrupt, IndexMissing after `close`."""
        from kb.index.prints import Prints  # late: a search has no use for it

        entry = self._files["prints"]
        path = self._folder / entry["name"]
        try:
            prints = Prints(load(self._prints.content(), path), self.size)
            if not are_sound([entry], prints.is_sound):
                raise ValueError("prints of something that is not there")
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise IndexCorrupt(f"does not hold what it should ({error!r})", path=path, hint="`kb build`") from None
        return prints

    def close(self) -> None:
        self._prints.close()
        self.records.close()
        self.profiles.close()

    @property
    def size(self) -> int:
        return self.rows.size

    @property
    def dim(self) -> int:
        return int(self._views.shape[1])

    def articles(self) -> list[tuple[str, str, int]]:
        """path, sha256 and number of records of every article, dead ones included, in the order of the rows."""
        data = snapshot.read_file(self._folder, self._files["articles"])
        lines = json.loads(b"[%s]" % b",".join(data.split(b"\n")[:-1]))
        return [(path, digest, count) for path, digest, count in lines]

    def chunks(self, spans: Sequence[tuple[int, int]], most: int = 2000) -> Iterator[tuple[tuple[int, int], Chunk]]:
        """What the articles of each span (places in `articles()`, the end excluded) contribute, some `most` records at
        a time, and the span that each chunk is of."""
        articles = self.articles()
        first_rows = np.concatenate([[0], np.cumsum([count for _, _, count in articles])]).tolist()
        by_record, prints_of = self.lexicon.postings.by_record(), self.prints.by_record(self.size)
        for first, last in spans:
            at = first
            while at < last:
                end = at + 1
                while end < last and first_rows[end + 1] - first_rows[at] <= most:
                    end += 1
                rows = range(first_rows[at], first_rows[end])
                yield (at, end), self._chunk(articles[at:end], rows, by_record, prints_of)
                at = end

    def _chunk(
        self,
        articles: Sequence[tuple[str, str, int]],
        rows: range,
        by_record: tuple[Array, Array, Array],
        prints_of: Callable[[int], tuple[str, str, str]],
    ) -> Chunk:
        from kb.index.chunk import Chunk  # late: a search has no use for it

        first, last = rows.start, rows.stop
        lines = [self.records.read(row) for row in rows]
        records = [json.loads(line) for line in lines]
        views = slice(*self._view_starts[[first, last]].tolist())
        starts, numbers, counts = by_record
        pairs = slice(*starts[[first, last]].tolist())
        terms, places = np.unique(numbers[pairs], return_inverse=True)
        return Chunk(
            articles=articles,
            ids=[record["id"] for record in records],
            lines=lines,
            profiles=[self.profiles.read(row) for row in rows],
            titles=self.rows.titles[first:last],
            subjects=[self.rows.subjects_of(row) for row in rows],
            projects=[record["project"] or "" for record in records],
            views=self._views[views],
            kinds=self._kinds[views],
            view_counts=np.diff(self._view_starts[first : last + 1]),
            terms=[self.lexicon.terms[number] for number in terms.tolist()],
            surprisal=self.lexicon.surprisal[terms],
            log_p=self.lexicon.log_p[terms],
            bag_counts=np.diff(starts[first : last + 1]),
            bag_terms=places.astype(np.int32),
            counts=counts[pairs],
            prints=[prints_of(row) for row in rows],
        )
