"""Where this system keeps the files of a user, for kb."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["cache_folder", "config_folder"]


def cache_folder() -> Path:
    """For what can be made again."""
    return _folder("LOCALAPPDATA", "AppData/Local", "Library/Caches", "XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """For settings."""
    return _folder("APPDATA", "AppData/Roaming", "Library/Application Support", "XDG_CONFIG_HOME", ".config")


def _folder(windows: str, windows_default: str, mac: str, xdg: str, xdg_default: str) -> Path:
    """By the environment variable of the system, else its default below the user's home."""
    if sys.platform == "win32":
        base = os.environ.get(windows) or Path.home() / windows_default
    elif sys.platform == "darwin":
        base = Path.home() / mac
    else:
        base = os.environ.get(xdg) or Path(os.path.expanduser("~")) / xdg_default
    return Path(base) / "kb-issues"
