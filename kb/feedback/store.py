"""The file of votes and misses: one sqlite database, apart from articles and index, for several processes at a time.

A vote says that an issue helped with a question, or did not fit it. Each person has one voice for an issue and a family
of questions, and the newest counts. A miss is a question that no issue answered. Of both only the masked lines are kept
(`kb.feedback.gist`), and of a person a hash that is salted by the file. Deleting the file undoes everything.

Every table has an upper bound, and one person can fill only a small share of it.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kb.errors import FeedbackError

if TYPE_CHECKING:
    from kb.feedback.gist import Gist

__all__ = ["MAX_MISSES", "MAX_VOTES", "Feedback", "Miss", "Vote"]

FORMAT: Final = 1
APPLICATION: Final = 0x6B62_6662  # "kbfb", as `file` and sqlite show it

MAX_VOTES: Final = 50_000
MAX_VOTES_OF_ONE: Final = 500
MAX_MISSES: Final = 10_000
MAX_MISSES_OF_ONE: Final = 1_000
"""families that one person can be an asker of"""
MAX_ASKERS: Final = 100
"""of one family that are told apart"""
MAX_NAME_CHARS: Final = 300
"""of an issue or a base"""
_BUSY_S = 2.0  # another process is waited for

_TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE vote (
    id INTEGER PRIMARY KEY, base TEXT NOT NULL, issue TEXT NOT NULL, family TEXT NOT NULL, person TEXT NOT NULL,
    helped INTEGER NOT NULL, at REAL NOT NULL, lang TEXT NOT NULL, lines TEXT NOT NULL,
    UNIQUE (base, issue, family, person));
CREATE INDEX vote_of_person ON vote (person, at);
CREATE TABLE miss (
    family TEXT PRIMARY KEY, lang TEXT NOT NULL, lines TEXT NOT NULL, count INTEGER NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, dismissed INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID;
CREATE TABLE asker (person TEXT NOT NULL, family TEXT NOT NULL, PRIMARY KEY (person, family)) WITHOUT ROWID;
CREATE INDEX asker_of_family ON asker (family);
"""


Heard = Mapping[tuple[str, str], Mapping[str, Mapping[str, bool]]]
"""(base, issue) -> family -> person -> did it help"""

_INHERITED: list[sqlite3.Connection] = []


@dataclass(frozen=True, slots=True)
class Vote:
    id: int
    base: str
    """as in `Hit.base`"""
    issue: str
    family: str
    """of the question (`Gist.family`); empty for a vote without one"""
    person: str
    helped: bool
    at: float
    """seconds since 1970"""
    lines: tuple[str, ...]
    """of the question, masked"""


@dataclass(frozen=True, slots=True)
class Miss:
    """A family of questions that were asked and not known."""

    family: str
    lang: str
    lines: tuple[str, ...]
    """of the newest one, masked"""
    count: int
    first: float
    """seconds since 1970"""
    last: float
    dismissed: bool
    askers: frozenset[str]
    """at most `MAX_ASKERS`"""


class Feedback:
    """The file at `path`. It is made at the first write; until then it is empty. Safe to share between threads and
    after a fork; every method raises FeedbackError for a file that is damaged, foreign, or of a later format."""

    def __init__(self, path: str | Path) -> None:
        self.path: Path = Path(path)
        self._lock = threading.RLock()
        self._open: tuple[tuple[int, int], sqlite3.Connection] | None = None
        self._salt: bytes = b""
        self._heard: tuple[int, Heard] | None = None
        self._seen: int | None = None  # the state of the database when `_heard` was found to be up to date

    def close(self) -> None:
        with self._lock:
            if self._open is not None and self._open[0][0] == os.getpid():
                self._open[1].close()
            self._open = self._heard = None

    # --- who ---------------------------------------------------------------------------------------------------------

    def person(self, who: str) -> str:
        """How this file names somebody: a hash, by the file's own salt. `who`: as `address 10.0.0.7` or `user 1000`."""
        with self._lock, self._told():
            self._database(write=True)
            return blake2b(who.encode("utf-8", "replace"), key=self._salt, digest_size=8).hexdigest()

    # --- votes -------------------------------------------------------------------------------------------------------

    def vote(self, base: str, issue: str, about: Gist | None, person: str, *, helped: bool) -> None:
        """Puts a person's voice, in the place of an earlier one for the same issue and family. `about`: None for the
        issue as such."""
        family, lines, lang = (about.family, about.lines, about.lang) if about else ("", (), "")
        key = base[:MAX_NAME_CHARS], issue[:MAX_NAME_CHARS], family, person
        with self._writing() as database:
            database.execute(
                "INSERT INTO vote (base, issue, family, person, helped, at, lang, lines)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET helped = excluded.helped,"
                " at = excluded.at, lang = excluded.lang, lines = excluded.lines",
                (*key, helped, time.time(), lang, _dumped(lines)),
            )
            _forget_oldest(database, "person = ?", (person,), MAX_VOTES_OF_ONE)
            _forget_oldest(database, "true", (), MAX_VOTES)
            self._changed(database)

    def take_back(self, base: str, issue: str, about: Gist | None, person: str) -> bool:
        """Removes that voice; whether there was one."""
        values = base[:MAX_NAME_CHARS], issue[:MAX_NAME_CHARS], about.family if about else "", person
        return self._forget("base = ? AND issue = ? AND family = ? AND person = ?", values) > 0

    def forget(self, votes: Iterable[int] | None = None) -> int:
        """Removes the votes with these ids, None: all of them; how many there were."""
        if votes is None:
            return self._forget("true", ())
        return sum(self._forget("id = ?", (one,)) for one in votes)

    def votes(self) -> list[Vote]:
        """All votes, the newest first."""
        columns = "id, base, issue, family, person, helped, at, lines"
        return [
            Vote(id, base, issue, family, person, bool(helped), at, _lines(lines))
            for id, base, issue, family, person, helped, at, lines in self._read(
                f"SELECT {columns} FROM vote ORDER BY at DESC, id DESC"
            )
        ]

    def heard(self) -> Heard:
        """All voices. They are read again only after one was put or removed, by whichever process."""
        with self._lock, self._told():
            database = self._database(write=False)
            if database is None:
                return {}
            (seen,) = database.execute("PRAGMA data_version").fetchone()
            if self._heard is None or self._seen != seen:
                self._seen = seen
                (number,) = database.execute("SELECT value FROM about WHERE name = 'votes'").fetchone()
                if self._heard is None or self._heard[0] != number:
                    self._heard = number, _heard(database)
            return self._heard[1]

    # --- misses ------------------------------------------------------------------------------------------------------

    def note_miss(self, asked: Gist, person: str) -> None:
        """Counts a question that was not known."""
        now = time.time()
        with self._writing() as database:
            known = database.execute("SELECT 1 FROM asker WHERE person = ? AND family = ?", (person, asked.family))
            if known.fetchone() is None:
                if _count(database, "asker WHERE person = ?", person) >= MAX_MISSES_OF_ONE:
                    return
                if _count(database, "asker WHERE family = ?", asked.family) < MAX_ASKERS:
                    database.execute("INSERT INTO asker VALUES (?, ?)", (person, asked.family))
            database.execute(
                "INSERT INTO miss (family, lang, lines, count, first, last) VALUES (?, ?, ?, 1, ?, ?)"
                " ON CONFLICT DO UPDATE SET count = count + 1, last = excluded.last, lines = excluded.lines",
                (asked.family, asked.lang, _dumped(asked.lines), now, now),
            )
            too_many = _count(database, "miss") - MAX_MISSES
            if too_many > 0:  # what was asked once, and long ago
                rows = database.execute(
                    "SELECT family FROM miss WHERE family != ? ORDER BY count, last LIMIT ?", (asked.family, too_many)
                )
                _remove_misses(database, [family for (family,) in rows])

    def misses(self) -> list[Miss]:
        """All of them, what was asked most often first."""
        askers: dict[str, set[str]] = {}
        for family, person in self._read("SELECT family, person FROM asker"):
            askers.setdefault(family, set()).add(person)
        return [
            Miss(family, lang, _lines(lines), count, first, last, bool(dismissed), frozenset(askers.get(family, ())))
            for family, lang, lines, count, first, last, dismissed in self._read(
                "SELECT family, lang, lines, count, first, last, dismissed FROM miss ORDER BY count DESC, family"
            )
        ]

    def dismiss(self, families: Iterable[str], *, dismissed: bool = True) -> None:
        """These families are no gaps: they stay, and are not shown."""
        with self._writing() as database:
            database.executemany("UPDATE miss SET dismissed = ? WHERE family = ?", [(dismissed, f) for f in families])

    def forget_misses(self, families: Sequence[str] | None = None) -> int:
        """Removes the misses of these families, None: all of them; how many families there were."""
        with self._writing() as database:
            if families is None:
                families = [family for (family,) in database.execute("SELECT family FROM miss")]
            return _remove_misses(database, families)

    # --- the file ----------------------------------------------------------------------------------------------------

    def _forget(self, where: str, values: Sequence[object]) -> int:
        with self._writing() as database:
            self._changed(database)
            return database.execute(f"DELETE FROM vote WHERE {where}", values).rowcount

    def _changed(self, database: sqlite3.Connection) -> None:
        database.execute("UPDATE about SET value = value + 1 WHERE name = 'votes'")
        self._heard = None

    def _read(self, query: str) -> list[tuple[Any, ...]]:
        with self._lock, self._told():
            database = self._database(write=False)
            return [] if database is None else database.execute(query).fetchall()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it or nothing."""
        with self._lock, self._told():
            database = self._database(write=True)
            assert database is not None
            database.execute("BEGIN IMMEDIATE")
            try:
                yield database
            except BaseException:
                database.execute("ROLLBACK")
                raise
            database.execute("COMMIT")

    def _database(self, *, write: bool) -> sqlite3.Connection | None:
        """The connection of this process to the file that is there now; None where there is none and none is made."""
        found = self._file()
        if found is None and not write:
            return None
        if self._open is not None and self._open[0] == found:
            return self._open[1]
        if self._open is not None and self._open[0][0] != os.getpid():
            _INHERITED.append(self._open[1])  # sqlite forbids to use, or even to close, what a fork brought along
        self._open = self._heard = None
        if found is None:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))  # private; so are -wal, -shm
            found = self._file()
        elif write:
            self._make_private()
        database = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._salt = _prepared(database, self.path)
        except BaseException:
            database.close()
            raise
        if found is not None:
            self._open = found, database
        return database

    def _make_private(self) -> None:
        """A file that was copied here may be open to others."""
        found = os.stat(self.path)
        if os.name == "posix" and found.st_mode & 0o077 and found.st_uid == os.geteuid():
            self.path.chmod(0o600)

    def _file(self) -> tuple[int, int] | None:
        """This process, and the file under the path: it may be deleted, and another one made, while we have it open."""
        try:
            return os.getpid(), os.stat(self.path).st_ino
        except FileNotFoundError:
            return None

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            busy = "locked" in str(error) or "busy" in str(error)
            hint = "try again" if busy else "move it away; kb begins a new one, and what was said is forgotten"
            raise FeedbackError(f"votes and misses cannot be used ({error})", path=self.path, hint=hint) from None
        except OSError as error:
            raise FeedbackError(
                f"votes and misses cannot be kept ({error.strerror or error})",
                path=self.path,
                hint="KB_FEEDBACK names another file",
            ) from None


def _prepared(database: sqlite3.Connection, path: Path) -> bytes:
    """Makes the tables of a new file, and returns its salt. Raises FeedbackError for a file of something else."""
    # The tables first: another process may make them, and its mark with them, between two of these questions.
    empty = _count(database, "sqlite_master") == 0
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (found,) = database.execute("PRAGMA user_version").fetchone()
    if empty and application == 0 and found == 0:
        _journal(database)
        database.execute("BEGIN IMMEDIATE")
        if _count(database, "sqlite_master") == 0:  # else another process was faster
            for statement in _TABLES.split(";\n"):
                database.execute(statement)
            database.execute("INSERT INTO about VALUES ('salt', ?), ('votes', 0)", (os.urandom(16),))
            database.execute(f"PRAGMA application_id = {APPLICATION}")
            database.execute(f"PRAGMA user_version = {FORMAT}")
        database.execute("COMMIT")
        (application,) = database.execute("PRAGMA application_id").fetchone()
        (found,) = database.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION:
        raise FeedbackError("is another program's database", path=path, hint="name a file of its own")
    if found != FORMAT:
        raise FeedbackError(f"has format {found}, this kb reads {FORMAT}", path=path, hint="update kb")
    database.execute("PRAGMA synchronous = NORMAL")  # with WAL: after a crash of the machine the last votes may be lost
    (salt,) = database.execute("SELECT value FROM about WHERE name = 'salt'").fetchone()
    return bytes(salt)


def _heard(database: sqlite3.Connection) -> Heard:
    found: dict[tuple[str, str], dict[str, dict[str, bool]]] = {}
    for base, issue, family, person, helped in database.execute("SELECT base, issue, family, person, helped FROM vote"):
        found.setdefault((base, issue), {}).setdefault(family, {})[person] = bool(helped)
    return found


def _journal(database: sqlite3.Connection) -> None:
    """Write-ahead log: who reads does not wait for who writes. Sqlite does not wait for its turn to switch it on."""
    deadline = time.monotonic() + _BUSY_S
    while True:
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _forget_oldest(database: sqlite3.Connection, where: str, values: Sequence[object], most: int) -> None:
    too_many = _count(database, f"vote WHERE {where}", *values) - most
    if too_many > 0:
        database.execute(
            f"DELETE FROM vote WHERE id IN (SELECT id FROM vote WHERE {where} ORDER BY at, id LIMIT ?)",
            (*values, too_many),
        )


def _remove_misses(database: sqlite3.Connection, families: Sequence[str]) -> int:
    removed = 0
    for family in families:
        removed += database.execute("DELETE FROM miss WHERE family = ?", (family,)).rowcount
        database.execute("DELETE FROM asker WHERE family = ?", (family,))
    return removed


def _count(database: sqlite3.Connection, of: str, *values: object) -> int:
    (count,) = database.execute(f"SELECT count(*) FROM {of}", values).fetchone()
    return int(count)


def _dumped(lines: Sequence[str]) -> str:
    return json.dumps(lines, ensure_ascii=True)  # a lone surrogate is no UTF-8


def _lines(text: str) -> tuple[str, ...]:
    try:
        found = json.loads(text)
    except ValueError:
        return ()
    return tuple(map(str, found)) if isinstance(found, list) else ()
