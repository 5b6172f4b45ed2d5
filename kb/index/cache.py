"""Keeps the index of articles that have none of their own in the user's cache, and makes the one that a wheel ships."""

from __future__ import annotations

import contextlib
import logging
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from kb.errors import IndexBusy, IndexWriteFailed
from kb.index.build import BuildReport, Progress, build
from kb.index.locate import SHIPPED, Location, is_fresh, mark, stamp, stamp_of
from kb.index.snapshot import MANIFEST, write

__all__ = ["renewed", "ship"]

_log = logging.getLogger("kb")
_PATIENCE_S = 20.0  # for another process that is making the same index
_MANY = 300  # articles, which take seconds: whoever sees no bar is told


@contextlib.contextmanager
def renewed(place: Location, progress: Progress | None = None) -> Iterator[Path]:
    """Yields the folder of an index of `place.articles` as they are now; a temporary folder where the cache cannot be
    written. Articles that cannot be read are left out, with a warning in the log."""
    folder = place.index
    deadline = time.monotonic() + _PATIENCE_S
    busy = True
    while busy:
        try:
            _renew(place, folder, progress)
            busy = False
        except IndexBusy:  # and if the other one dies, its work is ours
            time.sleep(0.05)
            busy = not is_fresh(place) and time.monotonic() < deadline
            if not busy and not is_fresh(place):
                _log.warning("%s: another process is still making this index; answering from its last state", folder)
        except IndexWriteFailed as error:
            _log.warning("%s; this index will not be kept", error)
            with tempfile.TemporaryDirectory(prefix="kb-", ignore_cleanup_errors=True) as temporary:
                _renew(place, Path(temporary), progress)
                yield Path(temporary)
            return
    yield folder


def ship(articles: Path, folder: Path) -> list[Path]:
    """Makes the index of `articles` for a wheel, and returns its files. Raises as `build` does."""
    build(articles, folder)
    write(folder / SHIPPED, stamp(articles, times=False).encode("ascii"))
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _takes_long(articles: Path) -> bool:
    return next(islice(articles.rglob("*.md"), _MANY, None), None) is not None


def _renew(place: Location, folder: Path, progress: Progress | None) -> BuildReport:
    articles = place.articles
    assert articles is not None
    found = stamp_of(place)  # taken first: what changes while the build runs is built again next time
    with contextlib.suppress(OSError):  # of which the build complains
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the articles may be private
    if progress is None and not (folder / MANIFEST).exists() and _takes_long(articles):
        _log.warning("making the index of %s: once, this takes a while", articles)
    report = build(articles, folder, keep_going=True, projects=place.projects, lang=place.lang, progress=progress)
    for error in report.bad:
        _log.warning("left out: %s", error)
    mark(folder, found)
    found = f"{report.issues} issue{'s' * (report.issues != 1)}"
    _log.warning("indexed %s from %s in %.1f s (kept in %s)", found, articles, report.took_s, folder)
    return report
