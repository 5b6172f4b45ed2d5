"""Articles are written, edited and deleted, builds are made, killed and joined, files are damaged: does the base always
say what a dictionary says?

A state machine of Hypothesis draws the steps. The dictionary holds the number that each
article's fix names. After a killed build the base may be in the old state or in the new one; after damage it may refuse
and name it, and never say anything else; the next build leaves exactly what the articles say. A base that was opened
earlier goes on, in a state that was right since then.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from made_up import article, fault_of, line_of
from outcome import Outcome

from kb.base import KnowledgeBase
from kb.encoders import open_encoder
from kb.errors import IndexCorrupt, IndexMissing
from kb.index import mapped, pieces
from kb.index.build import build

sys.path.append(str(Path(__file__).parent.parent))
from torn import broken as torn

State = dict[tuple[str, str], int]
"""(name, language) of an article -> the number in its fix"""

NAMES = ("flux", "tide", "lantern", "quagmire", "gasket", "sextant", "pulley", "anvil")
ENCODER = open_encoder()
DAMAGE = ("bit", "bit", "bit", "cut", "empty", "longer", "swapped", "zeros", "gone")


class Failed(AssertionError):
    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def damaged(data: bytes, kind: str, at: float, other: bytes) -> bytes:
    place = int(at * len(data))
    if kind == "bit":
        return data[:place] + bytes([data[place] ^ (1 << int(at * 1000) % 8)]) + data[place + 1 :] if data else b"\0"
    return {"cut": data[:place], "empty": b"", "longer": data + b"\0", "swapped": other, "zeros": bytes(len(data))}[
        kind
    ]


def compare(said: State, allowed: list[State]) -> None:
    """Raises Failed, with its kind, when a base says none of what it may."""
    if said in allowed:
        return
    what = f"{said} is none of {allowed}"
    if any(said.items() < state.items() for state in allowed):
        raise Failed("lost", what)
    if len(allowed) > 1 and said.items() <= {item for state in allowed for item in state.items()}:
        raise Failed("mixed", what)
    raise Failed("wrong", what)


class Base(RuleBasedStateMachine):
    """One folder of articles, its index, and somebody who opened it earlier."""

    counts: ClassVar[Counter[str]] = Counter()
    build: ClassVar[Callable[..., Any]] = staticmethod(build)
    failed: ClassVar[list[tuple[str, str]]] = []

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="kb-states-"))
        self.steps: list[str] = []
        self.articles: State = {}
        self.allowed: list[State] = []
        """what the index may say"""
        self.harmed = False
        self.held: KnowledgeBase | None = None
        self.held_may: list[State] = []
        """what `held` may say: every state that may have been published since it was opened"""
        self.took_s = 0.1
        self.write("anvil", "en", 0)
        self.make(False)

    def teardown(self) -> None:
        if self.held:
            self.held.close()
        shutil.rmtree(self.folder)

    # --- what is done -------------------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(NAMES), lang=st.sampled_from(["en", "zh"]), number=st.integers(1, 99))
    def write(self, name: str, lang: str, number: int) -> None:
        path = self.folder / "articles" / lang / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(article(name, number, lang), "utf-8")
        self.articles[name, lang] = number
        self.steps.append(f"write {lang}/{name} {number}")

    @rule(which=st.integers(0, 99))
    def delete(self, which: int) -> None:
        if len(self.articles) > 1:
            name, lang = sorted(self.articles)[which % len(self.articles)]
            (self.folder / "articles" / lang / f"{name}.md").unlink()
            del self.articles[name, lang]
            self.steps.append(f"delete {lang}/{name}")

    @rule(compact=st.booleans())
    def make(self, compact: bool) -> None:
        started = time.monotonic()
        self.build(self.folder / "articles", self.folder / "index", encoder=ENCODER, compact=compact)
        self.took_s = time.monotonic() - started
        self.allowed, self.harmed = [dict(self.articles)], False
        self.held_may.append(dict(self.articles))
        self.counts["builds"] += 1
        self.steps.append(f"build {'compact' if compact else ''}")

    @rule(compact=st.booleans(), after=st.floats(0, 1))
    def make_and_kill(self, compact: bool, after: float) -> None:
        """`after`: which part of the time that the last build took."""
        child = os.fork()
        if not child:
            try:
                self.build(self.folder / "articles", self.folder / "index", encoder=ENCODER, compact=compact)
            finally:
                os._exit(0)
        time.sleep(after * self.took_s)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        self.allowed.append(dict(self.articles))
        self.held_may.append(dict(self.articles))
        self.steps.append(f"kill a build {'compact' if compact else ''} after {after}")
        self.counts["builds killed" if os.WIFSIGNALED(status) else "builds that ended before they were killed"] += 1

    @rule(which=st.integers(0, 99), kind=st.sampled_from(DAMAGE), at=st.floats(0, 1, exclude_max=True))
    def damage(self, which: int, kind: str, at: float) -> None:
        """A whole file takes the place of another, for to cut one that is mapped ends those who map it."""
        files = sorted(path for path in (self.folder / "index").iterdir() if path.is_file())
        if not files:  # all are gone
            return
        path, other = files[which % len(files)], files[(which + 1) % len(files)]
        data, instead = path.read_bytes(), other.read_bytes()
        path.unlink()
        if kind != "gone":
            path.write_bytes(damaged(data, kind, at, instead))
        self.harmed = True
        self.steps.append(f"damage {path.name}: {kind} at {at}")
        self.counts["files damaged"] += 1

    @rule()
    def hold(self) -> None:
        if self.held:
            self.held.close()
            self.held = None
        if not self.harmed:
            self.steps.append("hold")
            self.held, self.held_may = KnowledgeBase.open(self.folder / "index", encoder=ENCODER), list(self.allowed)

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def says_what_it_may(self) -> None:
        try:
            self._look()
        except Exception as error:
            kind, what = (error.kind, str(error)) if isinstance(error, Failed) else ("crashed", repr(error))
            self.failed.append((kind, "\n".join([what, *self.steps])))
            raise

    def _look(self) -> None:
        if not hasattr(self, "held"):  # asked by Hypothesis before all is there
            return
        try:
            with KnowledgeBase.open(self.folder / "index", encoder=ENCODER) as base:
                self._asked(base, self.allowed)
        except (IndexCorrupt, IndexMissing) as error:
            if not self.harmed:
                raise Failed("wrong", f"refused, though nothing was damaged: {error}") from None
            if str(self.folder / "index") not in str(error):
                raise Failed("wrong", f"does not say which file is damaged: {error}") from None
            self.counts["refused after damage"] += 1
        while self.held:
            snapshot = self.held.search(line_of("anvil"), 1).snapshot
            try:
                self._asked(self.held, self.held_may)
            except Failed:
                if self.held.search(line_of("anvil"), 1).snapshot == snapshot:
                    raise
            else:
                break  # otherwise it has moved to a newer state while it was asked

    def _asked(self, base: KnowledgeBase, allowed: list[State]) -> None:
        said: State = {}
        for record in base.records():
            name, lang = record.source.path.split("/")[-1].removesuffix(".md"), record.lang
            said[name, lang] = int(record.fix.rstrip(".\n").rpartition(" ")[2])
            if fault := fault_of(record, name, said[name, lang]):
                raise Failed("wrong", fault)
        compare(said, allowed)
        for name in NAMES:
            hits = base.search(line_of(name), 3).hits
            first = hits[0].record if hits else None
            if any(other == name for other, _ in said):
                if first is None or first.issue != f"{name}#1":
                    raise Failed("lost", f"{name} is not found first")
                if fault := fault_of(first, name, said[name, first.lang]):
                    raise Failed("wrong", fault)
            elif any(hit.issue == f"{name}#1" for hit in hits):
                raise Failed("wrong", f"{name} was deleted, and is found")
            self.counts["answers checked"] += 1


# --- as a part of the nightly run -------------------------------------------------------------------------------------

SETTINGS = settings(
    max_examples=10,
    phases=[Phase.generate],  # to shorten what fails would take minutes, and another outcome of a race misleads it
    stateful_step_count=30,
    deadline=None,
    database=None,
    print_blob=False,
    verbosity=Verbosity.quiet,
    suppress_health_check=list(HealthCheck),
)
BROKEN: Mapping[str, str] = {
    "deletes nothing": "wrong or mixed",
    "forgets": "lost",
    "in place": "wrong",
    "unchecked": "wrong or crashed or lost",
}


def run(seconds: float, seed: int, *, broken: str = "") -> Outcome:
    """By turns with one segment, and with segments of three records and mapped files."""
    until, turn = time.monotonic() + seconds, 0
    _break(broken)
    while not Base.failed and (time.monotonic() < until or turn < 2 or (broken and turn < 12)):
        with _segments(small=turn % 2 == 1):
            try:
                run_state_machine_as_test(hypothesis.seed(seed * 1000 + turn)(Base), settings=SETTINGS)
            except Exception as error:
                notes = "\n".join(getattr(error, "__notes__", []))
                kind, what = Base.failed[-1] if Base.failed else ("crashed", repr(error))
                Base.failed[:] = [(kind, f"seed {seed}, turn {turn}: {what}\n{notes}")]
        turn += 1
    return Outcome(Base.counts, Base.failed)


@contextmanager
def _segments(*, small: bool) -> Iterator[None]:
    kept = pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, mapped.MAPPED_FROM
    if small:
        pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, mapped.MAPPED_FROM = 0, 3, 3, 0
    try:
        yield
    finally:
        pieces.ONE_UP_TO, pieces.SEGMENT, pieces.MOST_OF_A_TIER, mapped.MAPPED_FROM = kept


def _break(broken: str) -> None:
    """The process ends with the part: nothing has to be mended."""
    if broken == "deletes nothing":
        Base.build = staticmethod(_deleting_nothing)
    elif broken == "forgets":
        Base.build = staticmethod(_forgetting)
    elif broken == "in place":
        torn.in_place()
    elif broken == "unchecked":
        torn.unchecked()


def _deleting_nothing(articles: Path, index: Path, **options: Any) -> object:
    """Builds with an article that was there at an earlier build, though it may be gone."""
    kept = index.parent / "kept"
    for path in articles.glob("*/*.md"):
        copy = kept / path.relative_to(articles)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return build(kept, index, **options)


def _forgetting(articles: Path, index: Path, **options: Any) -> object:
    """Builds without the last of many articles."""
    kept = index.parent / "kept"
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(articles, kept)
    several = sorted(kept.glob("*/*.md"))
    if len(several) > 3:
        several[-1].unlink()
    return build(kept, index, **options)
