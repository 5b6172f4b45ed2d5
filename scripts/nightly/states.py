"""Articles are written, edited and deleted, builds are made, killed and joined, files are damaged: does the base always
say what a dictionary says?

A state machine of Hypothesis draws the steps, and shortens what fails. The dictionary holds the number that each
article's fix names. After a killed build the base may be in the old state or in the new one; after damage it may refuse
(`KbError`), and never say anything else; the next build leaves exactly what the articles say.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from made_up import article
from outcome import Outcome

from kb.base import KnowledgeBase
from kb.encoders import open_encoder
from kb.errors import KbError
from kb.index import pieces, segment
from kb.index.build import build

State = dict[tuple[str, str], int]
"""(name, language) of an article -> the number in its fix"""

NAMES = ("flux", "tide", "lantern", "quagmire", "gasket", "sextant", "pulley", "anvil")
ENCODER = open_encoder()


def damaged(data: bytes, kind: str, at: float, other: bytes) -> bytes:
    place = int(at * len(data))
    if kind == "bit":
        return data[:place] + bytes([data[place] ^ (1 << int(at * 1000) % 8)]) + data[place + 1 :] if data else b"\0"
    return {"cut": data[:place], "empty": b"", "longer": data + b"\0", "swapped": other, "zeros": bytes(len(data))}[
        kind
    ]


class Base(RuleBasedStateMachine):
    """One folder of articles, and its index."""

    counts: ClassVar[Counter[str]] = Counter()
    build: ClassVar[Callable[..., Any]] = staticmethod(build)

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="kb-states-"))
        self.articles: State = {}
        self.allowed: list[State] = []
        """what the index may say; empty when there may be none"""
        self.harmed = False
        self.write("anvil", "en", 0)
        self.make(False)

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    # --- what is done -------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), lang=st.sampled_from(["en", "zh"]), number=st.integers(1, 99))
    def write(self, name: str, lang: str, number: int) -> None:
        path = self.folder / "articles" / lang / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(article(name, number, lang), "utf-8")
        self.articles[name, lang] = number

    @rule(which=st.integers(0, 99))
    def delete(self, which: int) -> None:
        if len(self.articles) > 1:
            name, lang = sorted(self.articles)[which % len(self.articles)]
            (self.folder / "articles" / lang / f"{name}.md").unlink()
            del self.articles[name, lang]

    @rule(compact=st.booleans())
    def make(self, compact: bool) -> None:
        self.build(self.folder / "articles", self.folder / "index", encoder=ENCODER, compact=compact)
        self.allowed, self.harmed = [dict(self.articles)], False
        self.counts["builds"] += 1

    @rule(compact=st.booleans(), after_s=st.floats(0, 0.08))
    def make_and_kill(self, compact: bool, after_s: float) -> None:
        child = os.fork()
        if not child:
            try:
                self.build(self.folder / "articles", self.folder / "index", encoder=ENCODER, compact=compact)
            finally:
                os._exit(0)
        time.sleep(after_s)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        self.allowed.append(dict(self.articles))
        self.counts["builds killed"] += 1

    @rule(
        which=st.integers(0, 99),
        kind=st.sampled_from(["bit", "bit", "bit", "cut", "empty", "longer", "swapped", "zeros", "gone"]),
        at=st.floats(0, 1, exclude_max=True),
    )
    def damage(self, which: int, kind: str, at: float) -> None:
        files = sorted(path for path in (self.folder / "index").iterdir() if path.is_file())
        path, other = files[which % len(files)], files[(which + 1) % len(files)]
        if kind == "gone":
            path.unlink()
        else:
            path.write_bytes(damaged(path.read_bytes(), kind, at, other.read_bytes()))
        self.harmed = True
        self.counts["files damaged"] += 1

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def says_what_it_may(self) -> None:
        if not self.allowed:
            return
        try:
            with KnowledgeBase.open(self.folder / "index", encoder=ENCODER) as base:
                said = self._said(base)
                assert said in self.allowed, f"{said} is none of {self.allowed}"
                self._asked(base, said)
        except KbError:
            assert self.harmed, "refused, though nothing was damaged"
            self.counts["damage refused"] += 1

    def _said(self, base: KnowledgeBase) -> State:
        found: State = {}
        for record in base.records():
            name, lang = record.source.path.split("/")[-1].removesuffix(".md"), record.lang
            found[name, lang] = int(record.fix.rstrip(".\n").rpartition(" ")[2])
        return found

    def _asked(self, base: KnowledgeBase, said: State) -> None:
        for name in NAMES:
            hits = base.search(f"RuntimeError: the {name} of frame 3 has drained", 3).hits
            first = hits[0].record if hits else None
            if any(other == name for other, _ in said):
                assert first is not None and first.issue == f"{name}#1", f"{name} is not found first"
                assert f"{name} to {said[name, first.lang]}." in first.fix
            else:
                assert all(hit.issue != f"{name}#1" for hit in hits), f"{name} was deleted"
            self.counts["answers checked"] += 1


def run(seconds: float, *, broken: bool = False) -> Outcome:
    """Half of the time with one segment, half with segments of three records and mapped files. `broken`: a build that
    forgets to delete."""
    outcome = Outcome()
    only_drawn = settings(SETTINGS, phases=[Phase.generate])  # to shorten what fails takes a minute
    kept = pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, segment.MAPPED_FROM
    if broken:
        Base.build = staticmethod(_forgetful)
    try:
        for label, small in (("one segment", kept), ("many segments", (0, 3, 3, 0))):
            pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, segment.MAPPED_FROM = small
            until, seed = time.monotonic() + seconds / 2, 0
            while time.monotonic() < until and not outcome.wrong:
                try:
                    run_state_machine_as_test(hypothesis.seed(seed)(Base), settings=only_drawn if broken else SETTINGS)
                except AssertionError as error:
                    notes = "\n".join(getattr(error, "__notes__", []))
                    outcome.wrong.append(f"{label}: {error}\n{notes}")
                seed += 1
    finally:
        pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, segment.MAPPED_FROM = kept
        Base.build = staticmethod(build)
    outcome.tried = Counter(Base.counts)
    Base.counts.clear()
    return outcome


SETTINGS = settings(
    max_examples=10,
    stateful_step_count=25,
    deadline=None,
    database=None,
    print_blob=False,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
)


def _forgetful(articles: Path, index: Path, **options: Any) -> object:
    """Builds with an article that was there at the first build, though it may be gone."""
    kept = index.parent / "kept"
    for path in articles.glob("*/*.md"):
        copy = kept / path.relative_to(articles)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return build(kept, index, **options)
