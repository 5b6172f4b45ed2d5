"""The shape of the package: who may import whom, what a start costs, and that no pattern can be made to hang."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from conftest import NOISE_S, THOROUGH, check_growth, cpu_seconds

import kb
from kb.logs.codes import _Lazy

PACKAGE = Path(kb.__file__).parent
ROOT = PACKAGE.parent

# The rooms, lowest first: an import may only go down. CONTRIBUTING.md says what each layer is for.
LAYERS = [
    {"errors", "records", "text", "arrays"},
    {"logs", "articles", "scraped", "encoders"},
    {"index"},
    {
        "brief",
        "components",
        "why",
        "config",
        "language",
        "lookup",
        "search",
        "scan",
        "base",
        "bases",
        "places",
        "remote",
        "review",
        "importers",
        "evaluate",
        "feedback",
    },
    {"run", "hooks", "serve", "cli", "__main__"},
]
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}

# The room or module where each of these may be imported, at the head of a module or later.
ONLY_IN = {
    "faiss": {"index"},
    "pymilvus": {"index.milvus.engine"},
    "milvus_lite": {"index.milvus.engine"},
    "tokenizers": {"encoders"},
    "sentence_transformers": {"encoders"},
    "torch": set(),
    "transformers": set(),
    "safetensors": {"arrays"},
    "markdown_it": {"text.fences", "articles.lines", "serve.nodes", "cli.render"},
    "yaml": {"articles"},
    "jieba": set(),  # `text` reads its dictionary and imports none of it
    "click": {"cli"},
    "rich": {"cli"},
    "matplotlib": {"evaluate"},
    "html_to_markdown": {"importers"},
    "mcp": {"serve"},
    "pydantic": {"serve"},
    "prometheus_client": {"serve"},
    "IPython": {"hooks"},
    "pytest": {"hooks"},
    "pickle": {"index.processes"},  # between a build and its own children
    "marshal": set(),
    "requests": set(),
    "urllib": {"remote", "serve.mcp.server"},
    "socket": {"serve"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "http": {"remote"},
    "sqlite3": {"feedback"},
}

HEAVY = ["numpy", "faiss", "jieba", "torch", "tokenizers", "safetensors", "rich", "markdown_it", "yaml", "matplotlib"]
HEAVY += ["mcp", "pydantic", "prometheus_client", "starlette", "pymilvus"]


EXTRAS = {"starlette", "uvicorn", "pydantic", "prometheus_client", "mcp", "pymilvus"}


def _files() -> list[Path]:
    return sorted(path for path in PACKAGE.rglob("*.py"))


def _name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room(module: str) -> str | None:
    """The room of `kb.articles.lines` is `articles`; the package itself has none."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def _loaded(module: str) -> ModuleType | None:
    """None where the extra that it needs is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in EXTRAS:
            raise
        return None


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return (*ast.walk(ast.parse(path.read_bytes(), str(path))),)


@cache
def _imports(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple(_walk_imports(_nodes(path), _package(path)))


def _package(path: Path) -> str:
    """What `from . import` means in this file."""
    return _name(path) if path.name == "__init__.py" else _name(path).rpartition(".")[0]


def _walk_imports(nodes: Sequence[ast.AST], package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file imports anywhere in it; a name from a package counts as one.

    The package `kb` imports what it offers when a name is first used, so `kb.Scanner` after `import kb` is an import of
    its home `kb.scan`."""
    names = _names_of_kb(nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _from(node, package)
            if module == "kb":
                yield from ((node.lineno, name) for alias in node.names if (name := _home(alias.name)))
            else:
                yield node.lineno, module
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = _home(node.attr) if node.value.id in names else None
            if name:
                yield node.lineno, name


def _from(node: ast.ImportFrom, package: str) -> str:
    base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
    return ".".join([*base, *([node.module] if node.module else [])])


def _names_of_kb(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names that a file has for the package itself."""
    return frozenset(
        alias.asname or "kb"
        for node in nodes
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "kb" or (alias.name.startswith("kb.") and not alias.asname)
    )


def _home(name: str) -> str | None:
    """The module behind a name of the package; None for what the package has itself, as `kb.__version__`."""
    return None if name.startswith("__") else kb._HOMES.get(name, f"kb.{name}")


def _walk_private(nodes: Sequence[ast.AST], package: str) -> Iterator[tuple[int, str]]:
    """Line and full name of every private module or name of another room that a file imports or reaches into."""
    room = _room(package)
    modules: dict[str, str] = {}
    for node in nodes:
        found: list[tuple[int, str]] = []
        if isinstance(node, ast.Import):
            found = [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and (module := _from(node, package)).partition(".")[0] == "kb":
            found = [(node.lineno, f"{module}.{alias.name}") for alias in node.names]
            modules.update({alias.asname or alias.name: f"{module}.{alias.name}" for alias in node.names})
        for line, name in found:
            parts = name.split(".")
            if parts[0] == "kb" and _room(name) != room and any(map(_is_private, parts)):
                yield line, name
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_private(node.attr):
            name = modules.get(node.value.id, "")
            if name and _room(name) != room and name.rpartition(".")[2].islower():  # a module, no class
                yield node.lineno, f"{name}.{node.attr}"


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


# --- layers ---------------------------------------------------------------------------------------------------------


def test_every_module_has_a_room() -> None:
    rooms = {_room(_name(path)) for path in _files()} - {None}
    assert rooms == LAYER.keys()


def test_an_import_goes_down_or_stays() -> None:
    rooms = {path: _room(_name(path)) for path in _files() if path != PACKAGE / "__init__.py"}
    assert [
        f"{path}:{line} {name}" for path, room in rooms.items() for line, name in _upward(_imports(path), room or "")
    ] == []


def _upward(imports: Iterable[tuple[int, str]], room: str) -> list[tuple[int, str]]:
    own = [(line, name) for line, name in imports if name.startswith("kb.")]
    return [(line, name) for line, name in own if LAYER[_room(name) or ""] > LAYER[room]]


def test_what_is_private_stays_in_its_room() -> None:
    assert [
        f"{path}:{line} {name}" for path in _files() for line, name in _walk_private(_nodes(path), _package(path))
    ] == []


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("import kb\ndef f(base):\n    return kb.Scanner(base)", ["kb.scan"]),
        ("import kb as k\nx: 'int' = k.KnowledgeBase", ["kb.base"]),
        ("def f():\n    from kb import build", ["kb.index.build"]),
        ("import kb.scan.scanner", ["kb.scan.scanner"]),
        ("import kb.errors\nkb.scan.Scanner", ["kb.scan"]),
        ("from ..scan import Scanner", ["kb.scan"]),
        ("import kb\nprint(kb.__version__, kb.__file__)", []),
        ("import kb\nfrom kb.records import Hit\nkb.KbError", []),
    ],
)
def test_an_import_that_goes_up_is_seen(source: str, seen: list[str]) -> None:
    """Also one that only names what the package imports late. The room `text` is the lowest but one here."""
    assert [name for _, name in _upward(_walk_imports([*ast.walk(ast.parse(source))], "kb.text"), "text")] == seen


@pytest.mark.parametrize(
    ("source", "seen"),
    [
        ("from kb.text._tables import X", ["kb.text._tables.X"]),
        ("import kb.text._tables", ["kb.text._tables"]),
        ("from kb.text.tokens import _x as y", ["kb.text.tokens._x"]),
        ("from kb.text import tokens\ntokens._x()", ["kb.text.tokens._x"]),
        ("from kb import _HOMES", ["kb._HOMES"]),
        ("from kb.logs.read import _x\nfrom kb import __version__\nself._y", []),
    ],
)
def test_a_private_name_of_another_room_is_seen(source: str, seen: list[str]) -> None:
    assert [name for _, name in _walk_private([*ast.walk(ast.parse(source))], "kb.logs")] == seen


def test_rooms_do_not_go_in_circles() -> None:
    with pytest.raises(CycleError):
        TopologicalSorter({"a": {"b"}, "b": {"c"}, "c": {"a"}}).prepare()
    edges: dict[str, set[str]] = {room: set() for room in LAYER}
    for path in _files():
        room = _room(_name(path))
        if room is not None:
            edges[room] |= {_room(name) or room for _, name in _imports(path) if name.startswith("kb.")} - {room}

    TopologicalSorter(edges).prepare()  # a CycleError names the rooms


@pytest.mark.parametrize("package", ONLY_IN)
def test_a_package_is_imported_only_in_its_room(package: str) -> None:
    modules = {_name(path) for path in _files() for _, name in _imports(path) if name.partition(".")[0] == package}
    strays = {module for module in modules if not {_room(module), module.removeprefix("kb.")} & ONLY_IN[package]}
    assert not strays


def test_the_reader_of_imports_sees_them() -> None:
    """Were it blind, everything above would pass."""
    found = {(_room(_name(path)), name) for path in _files() for _, name in _imports(path)}
    assert ("index", "faiss") in found  # late
    assert ("encoders", "kb.encoders.unigram") in found
    assert ("search", "kb.search") in found  # from kb.search import ranking  # from kb import ranking
    assert ("articles", "kb.records") in found  # from ..records import


def test_nothing_is_printed() -> None:
    calls = [
        f"{_name(path)}:{node.lineno}"
        for path in _files()
        for node in _nodes(path)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "breakpoint")
    ]
    assert not calls


def test_nothing_is_evaluated() -> None:
    calls = [
        f"{_name(path)}:{node.lineno}"
        for path in _files()
        for node in _nodes(path)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("eval", "exec", "compile", "__import__")
    ]
    assert not calls


# --- what a start costs ---------------------------------------------------------------------------------------------

_SHOW_MODULES = "\nimport json, sys\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"


def _modules(code: str, **environment: str) -> set[str]:
    ended = subprocess.run(
        [sys.executable, "-c", code + _SHOW_MODULES],
        capture_output=True,
        env={**os.environ, **environment},
        timeout=60,
        check=True,
    )
    return set(json.loads(ended.stderr.splitlines()[-1]))


def _command(*arguments: str) -> str:
    return (
        f"import sys\nsys.argv = ['kb', *{list(arguments)!r}]\nfrom kb.cli import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert ended.code == 0, ended.code"
    )


@pytest.mark.parametrize(
    "code",
    [
        "import kb",
        "import kb; kb.KbError; kb.SearchResult",
        _command("--help"),
        _command("search", "-h"),
        _command("-V"),
    ],
    ids=["import", "nouns", "help", "search help", "version"],
)
def test_a_start_is_light(code: str) -> None:
    loaded = _modules(code)
    assert "kb" in loaded
    assert not loaded & {*HEAVY, "kb.index.build", "kb.articles", "kb.base"}


def test_naming_the_articles_is_light() -> None:
    loaded = _modules("import kb.articles")
    assert not {name for name in loaded if name.startswith(("kb.articles.", "kb.records", "kb.text"))}


def test_a_search_is_light(index: Path) -> None:
    loaded = _modules(_command("search", "DeepSpeed IndexError: pop from an empty deque"), KB_INDEX=str(index))
    assert {"numpy", "faiss", "kb.base"} <= loaded
    unneeded = {
        *HEAVY,
        "kb.index.build",
        "kb.articles",
        "kb.index.fsck",
        "kb.index.cache",
        "kb.logs.errors",
        "kb.logs.levels",
        "sentence_transformers",
        "numpy.ma",  # 12 ms, and numpy imports it by itself for `union1d`, `median` and some of `isin`
    }
    assert not loaded & (unneeded - {"numpy", "faiss"})


@pytest.mark.thorough
def test_a_chinese_search_needs_no_more(index: Path) -> None:
    loaded = _modules(_command("search", "多机训练时从空队列里取元素 pop from an empty deque"), KB_INDEX=str(index))
    assert not loaded & {"jieba", "tokenizers", "kb.index.build", "kb.articles"}


# --- faces ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [path for path in _files() if path.name != "__main__.py"], ids=_name)
def test_every_name_in_all_exists(path: Path) -> None:
    module = _loaded(_name(path))
    if module is None:
        pytest.skip('needs pip install "kb-issues[serve]"')
    names = getattr(module, "__all__", None)
    assert names is not None, "no __all__"
    assert len(names) == len(set(names))
    for name in names:
        try:
            assert hasattr(module, name), name
        except ModuleNotFoundError as missing:  # a name that is imported at first use
            assert missing.name in EXTRAS


def test_the_public_face() -> None:
    assert sorted(kb.__all__, key=str.casefold) == sorted(
        [
            "Article",
            "Bases",
            "BuildReport",
            "Finding",
            "Hit",
            "IssueRecord",
            "KbError",
            "KbHandler",
            "KnowledgeBase",
            "ScanReport",
            "Scanner",
            "SearchResult",
            "__version__",
            "build",
            "install_excepthook",
            "load_ipython_extension",
            "open_bases",
            "uninstall_excepthook",
            "unload_ipython_extension",
        ],
        key=str.casefold,
    )
    assert set(kb.__all__) <= set(dir(kb))
    with pytest.raises(AttributeError, match="no_such_name"):
        kb.no_such_name  # noqa: B018


def test_every_error_is_a_kb_error_with_a_code_of_its_own_kind() -> None:
    from kb import errors

    classes = [getattr(errors, name) for name in errors.__all__]
    assert all(issubclass(one, kb.KbError) for one in classes)
    codes = {one.__name__: one.exit_code for one in classes}
    told = dict(re.findall(r"(\w+) {2,}(\d+) ", str(errors.__doc__)))
    for name, code in codes.items():
        if name != "KbError":
            assert told[name] == str(code), name
    assert not {0, 1, 2} & {code for name, code in codes.items() if name != "KbError"}


def _pyproject(pattern: str) -> str:
    found = re.search(pattern, (ROOT / "pyproject.toml").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_one_version() -> None:
    assert _pyproject(r'^version = "([^"]+)"') == kb.__version__


def test_the_changelog_begins_with_this_version() -> None:
    changelog = ROOT / "CHANGELOG.md"
    if not changelog.exists():
        pytest.skip("there is no CHANGELOG.md yet")
    versions = re.findall(r"^## \[?v?(\d+\.\d+\.\d+\S*?)\]?(?:\s|$)", changelog.read_text("utf-8"), re.MULTILINE)
    assert versions[0] == kb.__version__


def test_every_dependency_is_used() -> None:
    module_of = {"faiss-cpu": "faiss", "markdown-it-py": "markdown_it", "pyyaml": "yaml"}
    declared = re.findall(r'^  "([\w-]+)', _pyproject(r"^dependencies = \[\n(.*?)^\]"), re.MULTILINE)
    imported = {name.partition(".")[0] for path in _files() for _, name in _imports(path)}
    imported.add("jieba")  # whose dictionary is read
    assert {module_of.get(name, name) for name in declared} <= imported
    assert len(declared) >= 8


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


# --- patterns -------------------------------------------------------------------------------------------------------

SIZES = [12, 16, 20, 24, 28, *(24 * 2**n for n in range(1, 10 if THOROUGH else 8))]
"""short ones first: what is exponential never ends"""
UNITS = {
    "spaces": " ",
    "letters": "a",
    "words": "ab ",
    "digits": "7",
    "dotted": "1.",
    "slashes": "/",
    "paths": "/a.b",
    "colons": ":",
    "escapes": "\x1b[",
    "quotes": '"',
    "back ticks": "`",
    "stars": "*",
    "hashes": "#",
    "dashes": "-",
    "brackets": "[",
    "links": "](",
    "parentheses": "(",
    "underscores": "_",
    "han": "的",
    "han words": "报错",
    "full width": "：",
    "lines": "\n",
    "list items": "- a\n",
    "rank": "[rank0]: ",
    "error": "error ",
    "percent": "100%|",
}


def _patterns() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Every pattern in a module of kb: also in tuples, lists and dictionaries, and those that are compiled late."""

    def within(name: str, value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
        if isinstance(value, re.Pattern):
            yield name, value
        elif isinstance(value, _Lazy):
            yield name, re.compile(*value._source)
        elif isinstance(value, (tuple, list)):
            for i, one in enumerate(value):
                yield from within(f"{name}[{i}]", one)
        elif isinstance(value, dict):
            for key, one in value.items():
                yield from within(f"{name}[{key!r}]", one)

    seen = set()
    for module in pkgutil.walk_packages([str(PACKAGE)], "kb."):
        if module.name == "kb.__main__":
            continue
        loaded = _loaded(module.name)
        for name, value in vars(loaded).items() if loaded else ():
            for where, pattern in within(f"{module.name}.{name}", value):
                if (pattern.pattern, pattern.flags) not in seen:
                    seen.add((pattern.pattern, pattern.flags))
                    yield where, pattern


def _written_within() -> Iterator[tuple[str, re.Pattern[str]]]:
    """Patterns that stand where they are used, inside of a function: `re.search(r"<t[drh]", text, re.IGNORECASE)`."""
    names = {"compile", "search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
    for path in _files():
        for node in _nodes(path):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names):
                continue
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == "re" and node.args):
                continue
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                flags = 0
                for name in ast.walk(node):
                    if isinstance(name, ast.Attribute) and name.attr.isupper():
                        flags |= getattr(re, name.attr)
                yield (
                    f"{_name(path).removesuffix('.py').replace('/', '.')}.line{node.lineno}",
                    re.compile(first.value, flags),
                )


@cache
def patterns() -> dict[str, re.Pattern[str]]:
    """Every pattern of kb by the name of its module and its own."""
    found = dict(_patterns())
    known = {(pattern.pattern, pattern.flags) for pattern in found.values()}
    return found | {name: one for name, one in _written_within() if (one.pattern, one.flags) not in known}


def test_patterns_are_found() -> None:
    assert len(patterns()) > 50
    assert any(".line" in name for name in patterns()), "those within functions"
    assert {"kb.logs.prefix._PREFIX", "kb.text.tokens._TOKEN", "kb.logs.codes._XID"} <= patterns().keys()


# Asked only what a line begins with: to look for them all along a text would be quadratic, and nobody does.
MATCHED = {"kb.logs.prefix._PREFIX", "kb.logs.classify._FRAME"}


def _search(pattern: re.Pattern[str], text: str, *, matched: bool) -> Callable[[], object]:
    subject: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    return lambda: pattern.match(subject) if matched else deque(pattern.finditer(subject), maxlen=0)


def _is_slow(pattern: re.Pattern[str], unit: str, *, matched: bool = False) -> bool:
    """Does the time grow faster than the text? Asked at the first size that takes long enough to be measured."""

    def search(size: int) -> Callable[[], object]:
        return _search(pattern, unit * (size // len(unit)) + "!", matched=matched)

    for size in SIZES:
        took = cpu_seconds(search(size))
        if took > NOISE_S:
            try:
                check_growth(search, size // 8)
            except AssertionError:
                return True
        if size > 700 and took * (SIZES[-1] / size) ** 2 < NOISE_S:  # even if it were quadratic
            return False
    return False


@pytest.mark.parametrize("room", sorted(LAYER))
def test_no_pattern_can_be_made_to_hang(room: str) -> None:
    slow = [
        (name, unit_name)
        for name, pattern in patterns().items()
        if _room(name) == room
        for unit_name, unit in UNITS.items()
        if _is_slow(pattern, unit, matched=name in MATCHED)
    ]
    assert not slow


def test_patterns_that_are_only_matched_are_only_matched() -> None:
    """In their own module; the test of private names keeps others away."""
    for name in MATCHED:
        module, _, variable = name.rpartition(".")
        tree = ast.parse(Path(str(importlib.import_module(module).__file__)).read_bytes())
        used = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == variable
        }
        assert used == {"match"}


@pytest.mark.thorough
def test_the_watch_over_patterns_can_bark() -> None:
    assert _is_slow(re.compile(r"\s+$"), " ")
    if THOROUGH:
        assert _is_slow(re.compile(r"(a+)+b"), "a")  # takes seconds
    assert not _is_slow(re.compile(r"\s+"), " ")
