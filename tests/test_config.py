"""kb.toml: what it may say, and what one that came with a folder may not."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import run_kb

from kb.config import BaseSettings, Settings, read_settings, settings
from kb.errors import SettingsError
from kb.index import trust
from kb.index.locate import SETTINGS
from kb.index.user import config_folder
from kb.places import places


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user with no settings, in an empty folder."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def _own(text: str) -> Path:
    path = config_folder() / SETTINGS
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


def _project(home: Path, text: str, *, trusted: bool = True) -> Path:
    (home / SETTINGS).write_text(text, "utf-8")
    if trusted:
        trust.remember(home, True)
    return home / SETTINGS


def test_without_a_file_nothing_is_set(home: Path) -> None:
    assert read_settings() == Settings()


def test_the_users_own_file(home: Path) -> None:
    path = _own(
        """
        lang = "zh"
        [bases]
        notes = "notes"
        team = "http://kb.intern:8000/"
        [bases.storage]
        folder = "/srv/docs"
        lang = "en"
        projects = { "longhorn/" = "Longhorn" }
        [search]
        order = ["team", "bundled"]
        known-at = 0.6
        [check]
        off = ["dead-link"]
        """
    )
    found = read_settings()
    assert found.files == (path,)
    assert (found.lang, found.order, found.known_at) == ("zh", ("team", "bundled"), 0.6)
    assert found.check_off == {"dead-link"}
    assert dict(found.bases) == {
        "notes": BaseSettings("notes", folder=path.parent / "notes"),
        "team": BaseSettings("team", url="http://kb.intern:8000"),
        "storage": BaseSettings("storage", Path("/srv/docs"), lang="en", projects={"longhorn/": "Longhorn"}),
    }


def test_the_nearer_file_says_more(home: Path) -> None:
    _own('lang = "en"\n[bases]\nx = "/far"\ny = "/y"\n[check]\noff = ["a", "b"]\n')
    _project(home, 'lang = "zh"\n[bases]\nx = "near"\n[check]\non = ["a"]\n')
    below = home / "a" / "b"
    below.mkdir(parents=True)
    found = read_settings(below)
    assert found.lang == "zh"
    assert [(name, base.folder) for name, base in found.bases.items()] == [("x", home / "near"), ("y", Path("/y"))]
    assert (found.check_off, found.check_on) == ({"b"}, {"a"})


def test_a_file_that_came_with_a_folder_counts_only_where_the_folder_is_trusted(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    _project(home, 'lang = "zh"\n', trusted=False)
    with caplog.at_level(logging.WARNING, "kb"):
        assert read_settings() == Settings()
    assert "kb trust" in caplog.text
    trust.remember(home, True)
    assert read_settings().lang == "zh"


def test_trusting_a_folder_warns_of_nothing(home: Path) -> None:
    _project(home, 'lang = "en"\n', trusted=False)
    settings.cache_clear()
    ended = run_kb("trust")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "is trusted" in ended.stdout
    settings.cache_clear()
    assert read_settings().lang == "en"


def test_a_link_is_not_followed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.toml").write_text('lang = "zh"\n')
    (home / SETTINGS).symlink_to(tmp_path / "elsewhere.toml")
    trust.remember(home, True)
    assert read_settings() == Settings()


def test_a_trusted_folder_sends_no_question_to_an_address(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    _project(home, '[bases]\nevil = "https://collect.example"\nok = "docs"\n')
    with caplog.at_level(logging.WARNING, "kb"):
        assert list(read_settings().bases) == ["ok"]
    assert "not asked" in caplog.text


@pytest.mark.parametrize("folder", ["/etc", "..", "../other", "docs/../../x"])
def test_a_trusted_folder_names_no_base_outside_itself(home: Path, folder: str) -> None:
    _project(home, f'[bases]\nx = "{folder}"\n')
    with pytest.raises(SettingsError, match="outside"):
        read_settings()


def test_a_link_inside_a_trusted_folder_leads_nowhere_else(home: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    (home / "docs").symlink_to(tmp_path / "secret")
    _project(home, '[bases]\nx = "docs"\n')
    with pytest.raises(SettingsError, match="outside"):
        read_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lang = ", "is not TOML"),
        ("\xff\xfe", "is not TOML"),
        ('lang = "fr"', "lang is 'fr'"),
        ('langg = "zh"', "langg is no setting"),
        ("bases = 3", "bases is no table"),
        ("[bases]\nx = 3", "bases.x is no folder"),
        ("[bases.x]\n", "a folder, a url or a store"),
        ('[bases.x]\nfolder = "a"\nurl = "http://b"', "one of"),
        ('[bases.x]\nurl = "ftp://b"', "begins with http"),
        ('[bases.x]\nfolder = "a"\nsecond = 3', "bases.x.second is no setting"),
        ('[bases.x]\nfolder = "a"\nseconds = true', "bases.x.seconds is True"),
        ('[bases]\nbundled = "a"', "cannot have this name"),
        ('[bases.x]\nfolder = "a"\nprojects = { a = 3 }', "no name of a project"),
        ("[search]\nknown-at = 2", "0 to 1"),
        ("[search]\nknown-at = nan", "0 to 1"),
        ('[search]\norder = "a"', "no list of names"),
        ("[search]\norder = []", "is empty"),
        ("[check]\noff = [3]", "no list of names"),
        ("a = " + "[" * 100_000, "is not TOML"),
        ("#" * (2 << 20), "larger than"),
    ],
)
def test_what_kb_does_not_know_is_an_error_that_names_its_place(home: Path, text: str, message: str) -> None:
    path = _own("")
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SettingsError, match=message) as caught:
        read_settings()
    assert caught.value.path == str(path)


@pytest.mark.skipif(os.name == "nt", reason="no named pipes among files")
@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_settings_that_are_no_file_are_told(home: Path, make: Callable[[Path], None]) -> None:
    path = _own("")
    path.unlink()
    make(path)
    with pytest.raises(SettingsError, match="no file"):
        read_settings()


def test_an_order_of_unknown_bases_names_the_file(home: Path) -> None:
    path = _own('[search]\norder = ["nosuch"]\n')
    with pytest.raises(SettingsError, match=r"search\.order: there is no base 'nosuch'") as caught:
        places()
    assert caught.value.path == str(path)


def test_a_typing_mistake_gets_a_suggestion(home: Path) -> None:
    _own("[search]\nknown_at = 0.6\n")
    with pytest.raises(SettingsError) as caught:
        read_settings()
    assert "search.known-at" in (caught.value.hint or "")


@pytest.mark.skipif(os.name == "nt", reason="owners of files")
def test_somebody_elses_file_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _project(home, 'lang = "zh"\n')
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    if os.lstat(home).st_uid == 0:
        pytest.skip("root's files count for everybody")
    assert read_settings() == Settings()


DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("page", ["bases.md", "bases.zh.md"])
def test_the_sample_of_the_docs_can_be_read(home: Path, page: str) -> None:
    if not (DOCS / page).exists():
        pytest.skip("an installation has no docs")
    sample = (DOCS / page).read_text("utf-8").partition("```toml\n")[2].partition("```")[0]
    _own(sample)
    found = read_settings()
    assert list(found.bases) == ["runbooks", "team", "storage", "cloud"]
    assert found.bases["cloud"].token_file == config_folder() / "cloud.token"
    assert found.order == ("storage", "team", "bundled")
