"""Puts the index of the articles into the wheel, so that the first search after `pip install` need not make it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Index(BuildHookInterface):  # type: ignore[type-arg,misc]
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":  # a checkout's articles change, and their index is made in the cache
            return
        sys.path.insert(0, self.root)
        from kb.index.cache import ship

        self._folder = tempfile.TemporaryDirectory(prefix="kb-wheel-")
        for file in ship(Path(self.root) / "articles", Path(self._folder.name)):
            build_data["force_include"][str(file)] = f"kb/bundled/index/{file.name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._folder.cleanup()
