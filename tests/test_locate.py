"""kb.index.locate and kb.index.cache: whose knowledge base is meant, and is its index as new as its articles?"""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import CORPUS, Write, article, running
from test_snapshot import DAMAGE, deadline, holder, nobody, posix

from kb import encoders
from kb.base import KnowledgeBase
from kb.cli import cli
from kb.encoders import transformer
from kb.errors import EncoderUnavailable, IndexBusy, IndexMissing, IndexWriteFailed
from kb.hooks.guard import Guard, pinned
from kb.index import cache, locate, snapshot, trust
from kb.index.build import build
from kb.index.cache import ship
from kb.index.locate import STAMP, is_fresh, own_articles, stamp, undecided
from kb.index.locate import locate as find
from kb.index.user import NOWHERE, cache_folder, config_folder, data_folder

ROOT = Path(__file__).parent.parent


def base_in(folder: Path, error: str, *, index: str = "index", articles: bool = True) -> Path:
    """A folder with an index of one issue, and its articles."""
    (folder / "articles" / "en").mkdir(parents=True)
    (folder / "articles" / "en" / "a.md").write_text(article(error))
    if index:
        build(folder / "articles", folder / index)
    trust.remember(folder, True)
    if not articles:
        shutil.rmtree(folder / "articles")
    return folder


def told(index: str | Path | None = None) -> list[str]:
    """The error lines of the base that is meant here."""
    with KnowledgeBase.open(index) as base:
        return [record.errors[0] for record in base.show("a")]


# where


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Bases of different contents, one named, one in the environment, one here."""
    base_in(tmp_path / "named", "named")
    base_in(tmp_path / "environment", "environment")
    base_in(tmp_path / "project", "project")
    (tmp_path / "project" / "src" / "deep").mkdir(parents=True)
    monkeypatch.setenv("KB_INDEX", str(tmp_path / "environment" / "index"))
    monkeypatch.chdir(tmp_path / "project" / "src" / "deep")
    return tmp_path


def test_the_name_comes_first_then_the_environment_then_the_folder(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert told(three / "named" / "index") == ["RuntimeError: named"]
    assert told(str(three / "named")) == ["RuntimeError: named"]  # the folder around it will do
    assert told() == ["RuntimeError: environment"]
    monkeypatch.setenv("KB_INDEX", str(three / "environment"))
    assert told() == ["RuntimeError: environment"]
    monkeypatch.setenv("KB_INDEX", "")
    assert told() == ["RuntimeError: project"]


def test_what_is_named_and_is_not_there_is_not_replaced_by_another(
    three: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(IndexMissing, match="nowhere"):
        told("nowhere")
    monkeypatch.setenv("KB_INDEX", str(three / "nowhere"))
    with pytest.raises(IndexMissing, match="nowhere"):
        told()


def test_the_nearest_base_is_meant(three: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KB_INDEX")
    inner = base_in(three / "project" / "src", "inner", index="")
    assert find().articles == inner / "articles"
    assert find().kept_fresh
    assert told() == ["RuntimeError: inner"]
    monkeypatch.chdir(three / "project")
    assert find() == locate.Location(three / "project" / "index", three / "project" / "articles", False)
    assert told() == ["RuntimeError: project"]


@pytest.mark.parametrize(
    ("files", "holds"),
    [
        (["articles/en/a.md"], True),
        (["articles/zh/a.md"], True),
        (["articles/a.md"], True),
        (["articles/a.txt"], False),
        (["articles/longhorn/1.5/a.mdx"], True),
        (["articles/pictures/a.png"], False),
        (["articles/.git/a.md"], False),
        (["en/a.md"], False),
        (["articles"], False),
    ],
)
def test_a_folder_of_articles_is_told_by_its_content(tmp_path: Path, files: list[str], holds: bool) -> None:
    here = tmp_path / "project"
    for file in files:
        (here / file).parent.mkdir(parents=True, exist_ok=True)
        (here / file).write_text(article("boom"))
    (here / "below").mkdir()
    assert own_articles(here / "below") == (here / "articles" if holds else None)


def test_an_index_without_its_articles_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(base_in(tmp_path / "project", "alone", articles=False))
    assert find().articles is None
    assert told() == ["RuntimeError: alone"]


def test_without_any_base_the_bundled_articles_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A few of them: all of them take seconds, and are built for the other tests."""
    for lang in ("en", "zh"):
        (tmp_path / "bundled" / lang).mkdir(parents=True)
        shutil.copy(CORPUS / lang / "ms-swift-ovis2-grpo.md", tmp_path / "bundled" / lang)
    monkeypatch.setattr(locate, "bundled_articles", lambda: tmp_path / "bundled")
    place = find()
    assert place.kept_fresh
    assert place.index.parent == cache_folder()
    with KnowledgeBase.open() as base:
        assert base.search("IndexError: pop from an empty deque").hits[0].record.project


def _longer(site: Path) -> None:
    with (site / "articles" / "en" / "ms-swift-ovis2-grpo.md").open("a") as file:
        file.write("\n")


def _one_more(site: Path) -> None:
    (site / "articles" / "more.md").write_text(article("RuntimeError: one more"))


def _damaged(site: Path) -> None:
    (path,) = (site / "index").glob("dense-*")
    path.write_bytes(path.read_bytes()[::-1])


def _without_stamp(site: Path) -> None:
    (site / "index" / locate.SHIPPED).unlink()


@pytest.mark.thorough
@pytest.mark.parametrize("harm", [None, _longer, _one_more, _damaged, _without_stamp])
def test_the_index_of_a_wheel_answers_while_its_articles_are_as_they_were(
    harm: Callable[[Path], None] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    for lang in ("en", "zh"):
        (site / "articles" / lang).mkdir(parents=True)
        shutil.copy(CORPUS / lang / "ms-swift-ovis2-grpo.md", site / "articles" / lang)
    files = ship(site / "articles", site / "index")
    assert {path.suffix for path in files} == {".bin", ".json", ".jsonl", ".safetensors", ".stamp"}
    for path in site.rglob("*.md"):
        os.utime(path, (1, 1))  # an installation's times are its own
    monkeypatch.setattr(locate, "bundled_articles", lambda: site / "articles")
    if harm:
        harm(site)
    with KnowledgeBase.open() as base:
        assert base.name == "bundled"
        assert base.search("IndexError: pop from an empty deque").hits[0].record.project
        assert len(base.search("RuntimeError: one more").hits) == base.size == 2 + (harm is _one_more)
    assert cache_folder().exists() is (harm is not None)


@pytest.mark.parametrize("bundled", [True, False])
def test_bundled_articles_are_those_in_the_package_else_those_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundled: bool
) -> None:
    inside, beside = tmp_path / "site" / "kb" / "bundled" / "articles", tmp_path / "site" / "articles"
    beside.mkdir(parents=True)
    if bundled:
        inside.mkdir(parents=True)
    monkeypatch.setattr("kb.__file__", str(tmp_path / "site" / "kb" / "__init__.py"))
    assert locate.bundled_articles() == (inside if bundled else beside)
    beside.rmdir()
    if not bundled:
        with pytest.raises(IndexMissing) as caught:
            locate.bundled_articles()
        assert "--index" in (caught.value.hint or "")


@posix
def test_a_current_folder_that_was_deleted_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert find().articles == locate.bundled_articles()
    assert own_articles() is None


def test_the_cache_lies_where_the_system_keeps_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache_folder() == tmp_path / "home" / "cache" / "kb-issues"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "kb-issues"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == tmp_path / "home" / "Library" / "Caches" / "kb-issues"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_folder() == tmp_path / "local" / "kb-issues"


# fresh


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Articles without an index, and here is where we stand."""
    folder = base_in(tmp_path / "project", "first", index="")
    monkeypatch.chdir(folder)
    return folder


def test_the_cache_follows_the_articles(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert is_fresh(find()) is None
    assert told() == ["RuntimeError: first"]
    assert is_fresh(find())
    assert sorted(path.name for path in project.iterdir()) == ["articles"], "a question writes into nobody's folder"
    assert "indexed 1 issue" in caplog.text
    caplog.clear()
    assert told() == ["RuntimeError: first"]
    assert not caplog.text

    one = project / "articles" / "en" / "a.md"
    for change, expected in [
        (lambda: one.write_text(article("second")), ["RuntimeError: second"]),
        (lambda: os.utime(one, (1, 1)), ["RuntimeError: second"]),
        (lambda: one.write_text(article("third!", "fourth")), ["RuntimeError: third!", "RuntimeError: fourth"]),
        (lambda: (project / "articles" / "zh").mkdir(), ["RuntimeError: third!", "RuntimeError: fourth"]),
        (
            lambda: (project / "articles" / "zh" / "a.md").write_text(article("中文")),
            ["RuntimeError: third!", "RuntimeError: fourth", "RuntimeError: 中文"],
        ),
        (one.unlink, ["RuntimeError: 中文"]),
    ]:
        change()
        assert told() == expected
        assert is_fresh(find())


def test_a_stamp_tells_names_sizes_and_times(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    articles = write({"en/a.md": "12345", "en/b.md": "12345"})
    for path in articles.rglob("*.md"):
        os.utime(path, ns=(5, 5))
    seen = {stamp(articles)}
    assert stamp(articles) in seen
    os.utime(articles / "en" / "a.md", ns=(5, 6))
    seen.add(stamp(articles))
    os.utime(articles / "en" / "a.md", ns=(5, 5))
    assert len(seen) == 2
    assert stamp(articles) in seen
    (articles / "en" / "a.md").write_text("123456")
    os.utime(articles / "en" / "a.md", ns=(5, 5))
    seen.add(stamp(articles))
    (articles / "en" / "a.md").rename(articles / "en" / "c.md")
    seen.add(stamp(articles))
    monkeypatch.setattr("kb.__version__", "another")
    seen.add(stamp(articles))
    assert len(seen) == 5


def test_an_article_written_to_after_its_index_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An index of one's own is not renewed behind one's back."""
    folder = base_in(tmp_path / "project", "first", index="")
    monkeypatch.chdir(folder)
    assert CliRunner().invoke(cli, ["build"]).exit_code == 0
    caplog.clear()
    assert told() == ["RuntimeError: first"]
    assert not caplog.text
    (folder / "articles" / "en" / "a.md").write_text(article("second"))
    assert told() == ["RuntimeError: first"]
    assert "kb build" in caplog.text


def test_a_long_wait_is_announced_where_nobody_sees_a_bar(
    project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cache, "_MANY", 0)
    told()
    assert ["making the index" in line for line in caplog.messages] == [True, False]
    caplog.clear()
    (project / "articles" / "en" / "more.md").write_text(article("later"), "utf-8")
    told()  # an edit takes a moment
    assert "making the index" not in caplog.text


def test_bad_articles_are_left_out_with_a_word(project: Path, caplog: pytest.LogCaptureFixture) -> None:
    (project / "articles" / "en" / "bad.md").write_bytes(b"\xff\xfe\0")
    assert told() == ["RuntimeError: first"]
    assert "bad.md" in caplog.text


@posix
def test_the_stamp_is_written_through_no_link(project: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious.txt"
    precious.write_text("precious")
    place = find()
    place.index.mkdir(parents=True)
    (place.index / STAMP).symlink_to(precious)
    assert told() == ["RuntimeError: first"]
    assert precious.read_text() == "precious"
    assert is_fresh(place)


# a cache that is not as it was left


@pytest.mark.parametrize(
    ("stem", "damage"),
    [
        ("manifest", "removed"),
        ("manifest", "halved"),
        ("manifest", "a link"),
        ("lexical", "removed"),
        ("dense", "emptied"),
        ("rows", "a bit flipped"),
        ("records", "cut by a byte"),
        ("dense", "a pipe"),
    ],
)
def test_a_damaged_cache_is_made_anew(project: Path, stem: str, damage: str) -> None:
    if damage not in DAMAGE:
        pytest.skip("there are no such files here")
    told()
    index = find().index
    manifest, _ = snapshot.read_manifest(index)
    name = snapshot.MANIFEST if stem == "manifest" else manifest["files"][stem]["name"]
    DAMAGE[damage](index / name)
    assert told() == ["RuntimeError: first"]
    assert told() == ["RuntimeError: first"]


@pytest.mark.parametrize("damage", ["removed", "emptied", "halved", "random"])
def test_a_damaged_stamp_means_another_look(project: Path, damage: str) -> None:
    told()
    DAMAGE[damage](find().index / STAMP)
    assert not is_fresh(find())
    assert told() == ["RuntimeError: first"]
    assert is_fresh(find())


# a cache that cannot be written


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that others may look into but not write to."""
    monkeypatch.setattr(trust, "decision", lambda base: True)  # nobody has no settings of their own
    folder = Path(tempfile.mkdtemp())
    base_in(folder / "project", "first", index="")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


@posix
@pytest.mark.parametrize("where", ["no such folder", "a file", "a folder"])
def test_a_cache_that_cannot_be_written_is_done_without(
    foreign: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, where: str
) -> None:
    home = {"no such folder": foreign / "home", "a file": foreign / "project" / "articles" / "en" / "a.md"}
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.get(where, foreign)))
    monkeypatch.setenv("TMPDIR", tempfile.gettempdir())
    monkeypatch.chdir(foreign / "project")
    before = set(Path(tempfile.gettempdir()).glob("kb-*"))
    with nobody(), KnowledgeBase.open() as base:
        assert base.show("a")[0].errors == ("RuntimeError: first",)
        assert base.search("RuntimeError: first").hits[0].issue == "a#1"
    assert "will not be kept" in caplog.text
    assert set(Path(tempfile.gettempdir()).glob("kb-*")) <= before


@posix
@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EIO], ids=errno.errorcode.get)
def test_a_disk_without_locks_is_not_called_busy(
    code: int, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It said that a build was already running, for ever; and a search waited for it."""
    import fcntl

    flock, refused = fcntl.flock, list[int]()

    def refuse(fileno: int, how: int) -> None:
        if not refused:  # the first disk has none, that of the temporary folder has
            refused.append(fileno)
            raise OSError(code, os.strerror(code))
        flock(fileno, how)

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(IndexWriteFailed, match=re.escape(os.strerror(code))):
        build(project / "articles", tmp_path / "index")
    refused.clear()
    assert told() == ["RuntimeError: first"]
    assert "will not be kept" in caplog.text


@posix
def test_a_fresh_cache_need_not_be_written(foreign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(foreign / "project")
    foreign.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(foreign / "cache"))
    assert told() == ["RuntimeError: first"]
    for path in ((foreign / "cache"), *(foreign / "cache").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    with nobody():
        monkeypatch.setattr(cache, "build", None)  # nothing is built
        assert told() == ["RuntimeError: first"]


# several at once


@pytest.mark.thorough
@pytest.mark.usefixtures("shipped_is_built")
def test_two_processes_at_first_use_both_get_an_answer(project: Path) -> None:
    command = [sys.executable, "-m", "kb", "search", "RuntimeError: first", "--json"]
    with contextlib.ExitStack() as started:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        children = [started.enter_context(running(command, **options)) for _ in range(3)]
        for child in children:
            stdout, stderr = child.communicate(timeout=60)
            assert '"issue": "a#1"' in stdout, stderr
            assert "Traceback" not in stderr
    index = find().index
    assert not list(index.glob(".tmp-*"))
    assert is_fresh(find())


def test_who_finds_another_at_work_waits_for_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is played by the sleep."""
    place = find()
    monkeypatch.setattr(cache.time, "sleep", lambda _: finish())

    def finish() -> None:
        build(project / "articles", place.index)
        locate.mark(place.index, stamp(project / "articles", program=True))

    tried: list[object] = []

    def busy(*_: object, **__: object) -> None:
        tried.append(_)
        raise IndexBusy("a build is already running here", path=place.index)

    monkeypatch.setattr(cache, "build", busy)
    with cache.renewed(place) as folder:
        assert folder == place.index
        assert is_fresh(place)
    assert len(tried) == 1


@posix
def test_when_the_other_one_dies_its_work_is_done(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find().index.mkdir(parents=True)
    with holder(find().index) as child, deadline(10):
        monkeypatch.setattr(cache.time, "sleep", lambda _: (child.kill(), child.wait()))
        assert told() == ["RuntimeError: first"]


def test_patience_ends(project: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """One that hangs for ever keeps nobody from an answer: the old index, or an error, not a silence."""
    assert told() == ["RuntimeError: first"]
    (project / "articles" / "en" / "a.md").write_text(article("second"))
    monkeypatch.setattr(cache, "_PATIENCE_S", 0.1)
    caplog.set_level(logging.WARNING)
    with holder(find().index):
        assert told() == ["RuntimeError: first"]
    assert told() == ["RuntimeError: second"]


def test_nobody_is_served_half_an_index(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_PATIENCE_S", 0.1)
    find().index.mkdir(parents=True)
    with holder(find().index), pytest.raises(IndexMissing):
        told()
    assert told() == ["RuntimeError: first"]


def test_the_repository_has_articles_to_fall_back_on() -> None:
    assert own_articles(ROOT / "kb") == ROOT / "articles"


# whose base, and is it trusted


@posix
@pytest.mark.parametrize("part", [".", "articles", "articles/en", "index", "index/manifest.json"])
@pytest.mark.parametrize("way", ["found", "built"])
def test_a_base_of_which_a_part_is_somebody_elses_is_not_used(
    part: str, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Their article could answer with a command of theirs (git's safe.directory, CVE-2022-24765)."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    project = base_in(tmp_path / "project", "theirs")
    monkeypatch.chdir(project)
    os.chown(project / part, 1234, 1234)
    if way == "built":
        assert own_articles() is None
    else:
        assert find().articles == locate.bundled_articles()
    assert "somebody else" in caplog.text
    assert find(project / "index").index == project / "index", "what is named is used"


@posix
@pytest.mark.parametrize("linked", ["articles", "index", "articles/en"])
def test_a_link_of_somebody_else_leads_nowhere(
    linked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """In a folder that others may write to they could link to anything, articles of the user's own included."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    project = base_in(tmp_path / "project", "mine")
    (project / linked).rename(tmp_path / "elsewhere")
    (project / linked).symlink_to(tmp_path / "elsewhere")
    monkeypatch.chdir(project)
    assert find().articles != locate.bundled_articles(), "a link of one's own is followed"
    os.lchown(project / linked, 1234, 1234)
    assert find().articles == locate.bundled_articles()
    assert own_articles() is None


def test_a_base_that_nobody_trusted_is_not_used_and_one_is_told_how(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cloned = base_in(tmp_path / "cloned", "theirs")
    trust.remember(cloned, None)
    monkeypatch.chdir(cloned)
    assert find().bundled and undecided() == cloned
    assert f"{cloned} has a knowledge base of its own, which is ignored until you trust it" in caplog.text
    caplog.clear()
    trust.remember(cloned, False)
    assert find().bundled and undecided() is None
    assert not caplog.text, "who said no is not told again"
    trust.remember(cloned, True)
    assert find().index == cloned / "index" and undecided() is None


def test_below_an_untrusted_base_a_trusted_one_further_up_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = base_in(tmp_path / "mine", "mine")
    cloned = base_in(mine / "vendor" / "cloned", "theirs")
    trust.remember(cloned, None)
    monkeypatch.chdir(cloned)
    assert find().index == mine / "index"


def test_articles_equal_to_the_bundled_ones_need_no_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A checkout of kb, asked by an installed kb."""
    bundled = base_in(tmp_path / "site", "mine", index="") / "articles"
    monkeypatch.setattr(locate, "bundled_articles", lambda: bundled)
    shutil.copytree(bundled, tmp_path / "checkout" / "articles")
    monkeypatch.chdir(tmp_path / "checkout")
    assert find().bundled and undecided() is None
    assert not caplog.text
    (tmp_path / "checkout" / "articles" / "en" / "a.md").write_text(article("another"))
    assert find().bundled
    assert "kb trust" in caplog.text


@posix
@pytest.mark.parametrize("content", [b"", b"[]", b'{"x": 1}', b"\xff", b"[" * 100_000])
def test_damaged_decisions_mean_that_one_is_asked_again(tmp_path: Path, content: bytes) -> None:
    project = base_in(tmp_path / "project", "mine")
    (config_folder() / "trust.json").write_bytes(content)
    assert trust.decision(project) is None
    trust.remember(project, True)
    assert trust.decision(project) is True


@posix
def test_decisions_in_somebody_elses_file_do_not_count(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    project = base_in(tmp_path / "project", "mine")
    file = config_folder() / "trust.json"
    assert trust.decision(project) is True
    os.chown(file, 1234, 1234)
    assert trust.decision(project) is None
    os.chown(file, 0, 0)
    assert trust.decision(project) is True


@posix
@pytest.mark.parametrize("name", ["index", "articles"])
def test_a_closed_folder_above_is_no_obstacle(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`mkdir -m 700 /tmp/index` by anybody stopped every search below /tmp."""
    if os.geteuid() != 0:
        pytest.skip("only root can be somebody else")
    above = Path(tempfile.mkdtemp())
    try:
        above.chmod(0o755)
        (above / name).mkdir(mode=0o700)
        (above / "below").mkdir()
        monkeypatch.chdir(above / "below")
        with nobody():
            assert find().bundled
    finally:
        shutil.rmtree(above)


def test_articles_that_are_named_need_no_index_and_no_trust(tmp_path: Path) -> None:
    theirs = base_in(tmp_path / "cloned", "theirs", index="")
    trust.remember(theirs, None)
    for named in (theirs, theirs / "articles"):
        place = find(named)
        assert (place.articles, place.named, place.bundled) == (theirs / "articles", True, False)
        assert told(named) == ["RuntimeError: theirs"]


@posix
def test_without_a_home_nothing_in_the_current_folder_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clone could bring `~/.config/kb-issues/trust.json`, and trust itself."""
    cloned = base_in(tmp_path / "cloned", "theirs")
    brought = cloned / "~" / ".config" / "kb-issues"
    brought.mkdir(parents=True)
    (brought / "trust.json").write_text(json.dumps({str(cloned): True}))
    monkeypatch.chdir(cloned)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)  # no HOME, and no such user
    for value in ("", "relative", None):
        for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
            if value is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, value)
        assert trust.decision(cloned) is None
        assert find().bundled
        assert config_folder().is_absolute() and cache_folder().is_absolute()
    with pytest.raises(IndexWriteFailed):
        trust.remember(cloned, True)


@posix
def test_an_empty_home_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be the root of the file system."""
    monkeypatch.setenv("HOME", "")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for folder in (config_folder(), cache_folder(), data_folder()):
        assert folder.is_relative_to(NOWHERE)


@posix
@pytest.mark.parametrize("part", [".", "manifest.json", ".stamp"])
def test_a_cache_of_somebody_else_is_not_used(part: str, project: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Its stamp needs only names, sizes and times, which anybody can read; its answers would be called bundled."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    assert told() == ["RuntimeError: first"]
    place = find()
    os.chown(place.index / part, 1234, 1234)
    assert find().index != place.index
    assert told() == ["RuntimeError: first"]
    assert "somebody else" in caplog.text


@posix
def test_the_cache_is_the_users_alone(project: Path) -> None:
    assert told() == ["RuntimeError: first"]
    assert find().index.stat().st_mode & 0o77 == 0


@posix
@pytest.mark.parametrize("target", ["articles", "x" * 300])
def test_links_that_lead_nowhere_stop_nobody(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    (shared / "below").mkdir(parents=True)
    (shared / "index").mkdir()
    (shared / "index" / "manifest.json").touch()
    (shared / "articles").symlink_to(target)
    monkeypatch.chdir(shared / "below")
    assert find().bundled
    undecided()
    own_articles()


def test_decisions_of_several_processes_are_all_kept(tmp_path: Path) -> None:
    bases = [tmp_path / f"base{n}" for n in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda base: trust.remember(base, True), bases))
    assert all(trust.decision(base) for base in bases)


@posix
def test_a_build_writes_through_no_link_and_over_no_manifest_of_another_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = base_in(tmp_path / "project", "mine", index="")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "manifest.json").write_text('{"precious": 1}')
    (project / "index").symlink_to(tmp_path / "precious")
    monkeypatch.chdir(project)
    for arguments in ([], ["--index", str(tmp_path / "precious")]):
        assert isinstance(CliRunner().invoke(cli, ["build", *arguments]).exception, IndexWriteFailed)
    monkeypatch.setenv("KB_INDEX", str(project / "articles"))
    assert isinstance(CliRunner().invoke(cli, ["build"]).exception, IndexWriteFailed)
    assert (tmp_path / "precious" / "manifest.json").read_text() == '{"precious": 1}'
    assert not list((project / "articles").glob("*.json*"))


# an encoder that lies in a folder


@pytest.fixture
def with_folder_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A trusted base whose index says that its encoder is the folder `index/model`, which holds a program."""
    project = base_in(tmp_path / "project", "theirs")
    model = project / "index" / "model"
    model.mkdir()
    (model / "modules.json").write_text('[{"idx": 0, "name": "0", "path": "", "type": "evil.Evil"}]')
    (model / "evil.py").write_text("import pathlib\npathlib.Path('ran').touch()\nclass Evil: pass\n")
    manifest, _ = snapshot.read_manifest(project / "index")
    manifest["encoder"]["name"] = "index/model"
    manifest.pop("sha256", None)
    text = snapshot._text({**manifest, "sha256": snapshot._digest(manifest)})
    (project / "index" / "manifest.json").write_bytes(text)
    monkeypatch.chdir(project)
    monkeypatch.syspath_prepend(str(model))
    return project


@pytest.mark.usefixtures("corpus_is_bundled")
@pytest.mark.parametrize("door", ["open", "search", "scan", "show", "check", "run", "hook"])
def test_an_index_that_was_found_brings_no_encoder_from_a_folder(
    door: str, with_folder_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kb search` in a cloned repository ran that folder's evil.py with an older sentence-transformers."""
    opened: list[str] = []
    monkeypatch.setattr(encoders, "_is_static", lambda folder: opened.append(str(folder)) or False)
    if door == "open":
        with pytest.raises(EncoderUnavailable, match="named"):
            KnowledgeBase.open()
    elif door == "hook":
        answer = Guard(pinned()).ask(lambda: "boom")
        assert answer is not None and "only for an index that is named" in str(answer.silent)
    else:
        Path("log").write_text("boom")
        command = {"scan": ["log"], "check": [], "run": ["false"]}.get(door, ["boom"])
        monkeypatch.setattr("kb.run.leave", lambda outcome: sys.exit(outcome.code))
        ended = CliRunner().invoke(cli, [door, *command], catch_exceptions=True)
        assert ended.exit_code, ended.output
    assert not opened, "the folder was not even looked at"
    assert not Path("ran").exists()


@pytest.mark.parametrize("found", ["5.7.0", "3.0", "2.2.2"])
def test_a_sentence_transformers_that_runs_what_lies_in_a_folder_is_refused(
    found: str, with_folder_encoder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transformer, "version", lambda name: found)
    with pytest.raises(EncoderUnavailable, match=f"needs sentence-transformers 6 or later, here is {found}"):
        KnowledgeBase.open(with_folder_encoder / "index")
