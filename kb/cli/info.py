"""`kb info`: which bases answer here, how many issues they know, how old they are, and which settings count."""

from __future__ import annotations

import os
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import kb
from kb.cli.common import (
    base_option,
    echo,
    forbid_network,
    index_option,
    json_option,
    plain,
    print_json,
    warn_on_stderr,
)
from kb.errors import KbError

if TYPE_CHECKING:
    from kb.index.locate import Location
    from kb.places import Place

__all__ = ["info"]

_EXIT_SILENT = 1


@click.command()
@json_option
@base_option
@index_option
def info(as_json: bool, bases: tuple[str, ...], index: str | Path | None) -> None:
    """Show which bases answer here, in the order in which they are asked: how many issues each has, how old it is, and
    by which encoder it was made. 查看当前会查询哪些知识库。

    \b
      kb info
      kb info --base http://kb.intern:8000

    Exits with 1 when one of them does not answer.
    """
    from kb.config import settings
    from kb.index.user import cache_folder
    from kb.places import places

    warn_on_stderr()
    forbid_network()
    known = settings()
    found = [_of_place(place) for place in places(bases, index=index)]
    cache = cache_folder()
    form = {
        "version": kb.__version__,
        "bases": found,
        "settings": [str(path) for path in known.files],
        "environment": {name: value for name, value in sorted(os.environ.items()) if name in _NAMES},
        "cache": {"folder": str(cache), "bytes": _bytes_below(cache)},
    }
    if as_json:
        print_json(form)
    else:
        _print(form)
    sys.exit(_EXIT_SILENT if any(base["error"] for base in found) else 0)  # click's Exit is lost in `main`


_NAMES = ("KB_INDEX", "KB_STORE", "KB_BASES", "KB_LANG", "KB_PAGER", "KB_DEBUG")


def _of_place(place: Place) -> dict[str, Any]:
    from kb.index.locate import Location

    one: dict[str, Any] = {
        "name": place.name or _where(place),
        "where": "",
        "index": None,
        "issues": None,
        "records": None,
    }
    one |= {"built": None, "fresh": None, "encoder": None, "snapshot": None, "error": None}
    try:
        return one | (_of_folder(place) if isinstance(place, Location) else _of_address(place))
    except KbError as error:
        return one | {"where": _where(place), "error": f"{error}" + (f" ({error.hint})" if error.hint else "")}


def _where(place: Place) -> str:
    from kb.index.locate import Location

    return place.where if isinstance(place, Location) else str(place.url)


def _of_folder(place: Location) -> dict[str, Any]:
    from kb.base import KnowledgeBase
    from kb.index.locate import is_fresh
    from kb.index.snapshot import MANIFEST

    with KnowledgeBase.at(place) as base:
        manifest = base.searcher.store.header.manifest
        kept = place.index / MANIFEST
        built = kept.stat().st_mtime if kept.is_file() else None
        return {
            "name": base.name,
            "where": base.where,
            "index": place.store or str(place.index),
            "issues": base.size,
            "records": manifest["counts"].get("records"),
            "built": None if built is None else _time(built),
            "fresh": is_fresh(place),
            "encoder": manifest.get("encoder", {}).get("name"),
            "snapshot": base.snapshot,
        }


def _of_address(place: Any) -> dict[str, Any]:
    from kb.remote import RemoteBase

    base = RemoteBase(place)
    health = base.health()
    return {"name": base.name, "where": base.where, "snapshot": health["snapshot"]}


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="seconds")


def _bytes_below(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue
    return total


def _print(form: dict[str, Any]) -> None:
    for number, base in enumerate(form["bases"], 1):
        echo(f"{number}. {base['name']}")
        if base["error"]:
            echo(f"   does not answer: {plain(base['error'])}")
            continue
        if base["where"] != base["name"]:
            echo(f"   {base['where']}")
        if base["issues"] is None:
            echo(f"   over HTTP  ·  snapshot {base['snapshot']}")
            continue
        state = {True: "", False: "  ·  the articles have changed since: kb build", None: ""}[base["fresh"]]
        echo(f"   {base['issues']} issues, {base['records']} records  ·  encoder {base['encoder']}")
        built = f"built {base['built']}{state}  ·  " if base["built"] else ""
        echo(f"   {built}snapshot {base['snapshot']}")
    files = ", ".join(form["settings"]) or "no kb.toml"
    echo(f"settings: {files}")
    for name, value in form["environment"].items():
        echo(f"{name}={value}")
    echo(f"cache: {form['cache']['folder']} ({form['cache']['bytes'] / 1e6:.1f} MB)")
