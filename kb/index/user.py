"""Where this system keeps the files of a user, for kb."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["NOWHERE", "cache_folder", "config_folder", "data_folder", "is_own"]

NOWHERE = Path(os.devnull)
"""nothing can be read or written below it"""


def cache_folder() -> Path:
    """For what can be made again."""
    return _folder("LOCALAPPDATA", "AppData/Local", "Library/Caches", "XDG_CACHE_HOME", ".cache")


def config_folder() -> Path:
    """For settings."""
    return _folder("APPDATA", "AppData/Roaming", "Library/Application Support", "XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """For what the user gave and what cannot be made again."""
    return _folder("LOCALAPPDATA", "AppData/Local", "Library/Application Support", "XDG_DATA_HOME", ".local/share")


def is_own(*paths: Path) -> bool:
    """Do all of these belong to the user or root, as far as they exist? Links are not followed."""
    if sys.platform == "win32":
        return True
    for path in paths:
        try:
            if os.lstat(path).st_uid not in (0, os.geteuid()):
                return False
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return False
    return True


def _folder(windows: str, windows_default: str, mac: str, xdg: str, xdg_default: str) -> Path:
    """By the environment variable of the system, else its default below the user's home. Only absolute paths count: a
    user without a home folder must not get one in the current folder, which may be anybody's; nor is a home made that
    is not there (`HOME=/nonexistent` of a service)."""
    home = Path(os.path.expanduser("~"))
    if os.environ.get("HOME") == "" or not home.is_dir():  # an empty one would be the root folder
        home = Path()
    if sys.platform == "win32":
        bases = [Path(os.environ.get(windows) or home / windows_default)]
    elif sys.platform == "darwin":
        bases = [home / mac]
    else:
        bases = [Path(os.environ.get(xdg) or xdg_default), home / xdg_default]
    return next((base for base in bases if base.is_absolute()), NOWHERE) / "kb-issues"
