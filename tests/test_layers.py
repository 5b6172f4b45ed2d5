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
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kb

PACKAGE = Path(kb.__file__).parent
ROOT = PACKAGE.parent

# The rooms, lowest first: an import may only go down. CONTRIBUTING.md says what each layer is for.
LAYERS = [
    {"errors", "records", "text", "arrays"},
    {"logs", "articles", "scraped", "encoders"},
    {"index"},
    {"brief", "search", "scan", "base", "review", "importers", "evaluate"},
    {"run", "hooks", "serve", "cli", "__main__"},
]
LAYER = {room: number for number, rooms in enumerate(LAYERS) for room in rooms}

# The room or module where each of these may be imported, at the head of a module or later.
ONLY_IN = {
    "faiss": {"index"},
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
    "pickle": set(),
    "marshal": set(),
    "requests": set(),
    "urllib": set(),
    "socket": {"serve"},
    "starlette": {"serve"},
    "uvicorn": {"serve"},
    "http": set(),
}

HEAVY = ["numpy", "faiss", "jieba", "torch", "tokenizers", "safetensors", "rich", "markdown_it", "yaml", "matplotlib"]
HEAVY += ["mcp", "pydantic", "prometheus_client", "starlette"]


EXTRAS = {"starlette", "uvicorn", "pydantic", "prometheus_client"}


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
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes(), str(path))


@cache
def _imports(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple(_walk_imports(path))


def _walk_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of every module that a file imports anywhere in it; a name from a package counts as one."""
    package = _name(path) if path.name == "__init__.py" else _name(path).rpartition(".")[0]
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            if module == "kb":
                yield from ((node.lineno, f"kb.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, module


# --- layers ---------------------------------------------------------------------------------------------------------


def test_every_module_has_a_room() -> None:
    rooms = {_room(_name(path)) for path in _files()} - {None}
    assert rooms == LAYER.keys()


@pytest.mark.parametrize("path", [path for path in _files() if path != PACKAGE / "__init__.py"], ids=_name)
def test_an_import_goes_down_or_stays(path: Path) -> None:
    room = _room(_name(path))
    assert room is not None
    up = [
        f"{path.name}:{line} {name}"
        for line, name in _imports(path)
        if name.startswith("kb.") and LAYER[_room(name) or ""] > LAYER[room]
    ]
    assert not up


def test_rooms_do_not_go_in_circles() -> None:
    edges: dict[str, set[str]] = {room: set() for room in LAYER}
    for path in _files():
        room = _room(_name(path))
        if room is not None:
            edges[room] |= {_room(name) or room for _, name in _imports(path) if name.startswith("kb.")} - {room}

    def reach(room: str, seen: tuple[str, ...]) -> None:
        assert room not in seen, " -> ".join([*seen[seen.index(room) :], room])
        for other in sorted(edges[room]):
            reach(other, (*seen, room))

    for room in edges:
        reach(room, ())


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
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "breakpoint")
    ]
    assert not calls


def test_nothing_is_evaluated() -> None:
    calls = [
        f"{_name(path)}:{node.lineno}"
        for path in _files()
        for node in ast.walk(_tree(path))
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


def test_a_search_is_light(index: Path) -> None:
    loaded = _modules(_command("search", "IndexError: pop from an empty deque"), KB_INDEX=str(index))
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
    }
    assert not loaded & (unneeded - {"numpy", "faiss"})


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

SIZE = 30_000
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
    """Every compiled pattern in a module of kb, also those in tuples, lists and dictionaries."""

    def within(name: str, value: object) -> Iterator[tuple[str, re.Pattern[str]]]:
        if isinstance(value, re.Pattern):
            yield name, value
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


PATTERNS = dict(_patterns())


def test_patterns_are_found() -> None:
    assert len(PATTERNS) > 50
    assert {"kb.logs.prefix._PREFIX", "kb.text.tokens._TOKEN", "kb.logs.variables._PATH"} <= PATTERNS.keys()


# Asked only what a line begins with: to look for them all along a text would be quadratic, and nobody does.
MATCHED = {"kb.logs.prefix._PREFIX", "kb.logs.classify._FRAME"}


def _seconds(pattern: re.Pattern[str], text: str, *, matched: bool = False) -> float:
    subject: Any = text.encode() if isinstance(pattern.pattern, bytes) else text
    start = time.process_time()
    for _ in [pattern.match(subject)] if matched else pattern.finditer(subject):
        pass
    return time.process_time() - start


def _is_slow(pattern: re.Pattern[str], unit: str, *, matched: bool = False, limit_s: float = 0.2) -> bool:
    """Would 30,000 characters take longer than the limit, whenever they are tried?"""
    for size in (SIZE // 1000, SIZE // 100, SIZE // 10, SIZE // 3, SIZE):
        text = unit * (size // len(unit)) + "!"
        took = _seconds(pattern, text, matched=matched)
        if took > limit_s and all(_seconds(pattern, text, matched=matched) > limit_s for _ in range(2)):
            return True
        even_if_quadratic = took * (SIZE / size) ** 2
        if size >= SIZE // 100 and even_if_quadratic < limit_s:  # what is worse has shown by now
            return False
    return False


@pytest.mark.parametrize("name", PATTERNS)
def test_no_pattern_can_be_made_to_hang(name: str) -> None:
    matched = name in MATCHED
    slow = [unit_name for unit_name, unit in UNITS.items() if _is_slow(PATTERNS[name], unit, matched=matched)]
    assert not slow


def test_patterns_that_are_only_matched_are_only_matched() -> None:
    for name in MATCHED:
        module, _, variable = name.rpartition(".")
        source = Path(str(importlib.import_module(module).__file__)).read_text("utf-8")
        assert set(re.findall(rf"\b{variable}\.(\w+)", source)) == {"match"}


def test_the_watch_over_patterns_can_bark() -> None:
    assert _is_slow(re.compile(r"\s+$"), " ", limit_s=0.02)
    assert not _is_slow(re.compile(r"\s+"), " ", limit_s=0.02)
