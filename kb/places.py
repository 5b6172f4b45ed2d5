"""Which bases are asked, and where they are.

Those that the caller names, else `KB_STORE` or `KB_INDEX` alone, else `KB_BASES`, else those of kb.toml in its order.
Without any of these, and without an order: the base at or above the current folder, those of kb.toml, and the one that
is part of kb. A folder of articles never replaces that one in silence.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from kb.config import ADDRESS_HINT, BaseSettings, settings, wrong_address
from kb.errors import IndexMissing, QueryError, SettingsError
from kb.index import locate
from kb.index.locate import Location

__all__ = ["Place", "places"]

Place = Location | BaseSettings
"""where a base is: a folder, or an address"""


def places(names: Sequence[str] = (), *, index: str | Path | None = None, start: Path | None = None) -> Sequence[Place]:
    """The bases that are asked, in order.

    `names`: of kb.toml, `bundled`, `here` (the base at or above `start`, the current folder), folders, or addresses.
    `index`, or `KB_STORE` or `KB_INDEX` when no bases are named: that one and no other. Raises IndexMissing for a name
    that is none of these, QueryError for names and an index or a wrong address, SettingsError.
    """
    if index is not None and names:
        raise QueryError("an index and bases are named, and only one of both can be", hint="--index or --base")
    names = [*names] or [name for name in os.environ.get("KB_BASES", "").split(",") if name.strip()]
    if index is not None or (not names and locate.named_by_environment()):
        return [locate.locate(index)]
    known = settings()
    if names:
        return _distinct(_place(name.strip(), start) for name in names)
    if known.order:
        try:
            return _distinct(_place(name.strip(), start) for name in known.order)
        except IndexMissing as error:
            file = known.files[0] if len(known.files) == 1 else None
            raise SettingsError(f"search.order: {error.message}", path=file, hint=error.hint) from None
    found: list[Place] = [place] if (place := locate.here(start)) else []
    return _distinct([*found, *map(_configured, known.bases.values()), locate.bundled()])


def _place(name: str, start: Path | None) -> Place:
    known = settings().bases
    if not name:
        raise QueryError("a base has no name", hint="--base NAME, a folder, or the address of a kb serve or a store")
    if name in known:
        return _configured(known[name])
    if name == "bundled":
        return locate.bundled()
    if name == "here":
        if place := locate.here(start):
            return place
        raise IndexMissing("there is no base at or above this folder", path=start or Path.cwd())
    if name.startswith(("http://", "https://")):
        if wrong := wrong_address(name):
            raise QueryError(f"a base {wrong}", hint=ADDRESS_HINT)
        return BaseSettings(name, url=name.rstrip("/"))
    if locate.is_address(name) or Path(name).exists():
        return locate.named(name)
    from difflib import get_close_matches

    names = [*known, "bundled", "here"]
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"a folder, an address, or one of: {', '.join(names)}"
    raise IndexMissing(f"there is no base {name!r}", hint=hint)


def _configured(base: BaseSettings) -> Place:
    if base.store is not None:
        return replace(locate.named(base.store), name=base.name, token_file=base.token_file)
    if base.folder is None:
        return base
    return replace(locate.named(base.folder), name=base.name, lang=base.lang, projects=base.projects)


def _distinct(found: Iterable[Place]) -> list[Place]:
    """Each place once: the base of a checkout of kb is also the one that is part of kb."""
    kept: dict[str, Place] = {}
    for place in found:
        kept.setdefault(_identity(place), place)
    return list(kept.values())


def _identity(place: Place) -> str:
    if isinstance(place, BaseSettings):
        return place.url or ""
    return place.store or os.path.realpath(place.articles or place.index)
