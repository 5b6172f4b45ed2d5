"""Do the docs tell the truth that can be checked? Exits with 1 and a list when they do not.

- README.md and README.zh.md, and each page of docs/ in both languages, are twins: the same sections at the same levels,
  the same code blocks but for comments.
- Every relative link leads to a file.
- Every `kb ...` line in a code block names a command and options that exist.
- Every command has a help text.
- Every test and `make` target that a page names is there; docs/reliability.md has a row for each of the 36 checks.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click

from kb.cli import cli

ROOT = Path(__file__).parent.parent
BILINGUAL = {"glossary.md"}  # a page in both languages has no twin
PAGES = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if not path.match("*.zh.md") and path.name not in BILINGUAL),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
MARK = re.compile(r"`([^`\n]+)`")
TEST = re.compile(r"(?:tests/)?(?:((?:\w+/)?test_\w+\.py)(?:::|$))?(test_\w+)?")
DEF = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)
TESTS = {
    path.relative_to(ROOT / "tests").as_posix(): {*DEF.findall(path.read_text("utf-8"))}
    for path in (ROOT / "tests").rglob("test_*.py")
}
MAKE = re.compile(r"make ([a-z]+)")
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
CHECKS = 36
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


def every_command() -> dict[str, click.Command]:
    context = click.Context(cli)
    found = {name: cli.get_command(context, name) for name in cli.list_commands(context)}
    return {name: command for name, command in found.items() if command is not None}


COMMANDS = every_command()


def blocks(text: str, language: str) -> list[str]:
    return [body for name, body in FENCE.findall(text) if name == language]


def commands(body: str) -> list[str]:
    lines = [line.split("  #")[0].strip() for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def twins(page: Path) -> list[str]:
    twin = page.with_suffix(".zh.md")
    if not twin.exists():
        return [f"{twin.name}: is missing"]
    first, second = page.read_text("utf-8"), twin.read_text("utf-8")
    wrong = []

    def heads(text: str) -> list[int]:
        return [len(line.split(" ")[0]) for line in FENCE.sub("", text).splitlines() if re.match("#{1,4} ", line)]

    if heads(first) != heads(second):
        wrong.append(f"{twin.name}: its sections are not those of {page.name}")
    for language in ("bash", "python", "json"):
        one, other = ([commands(body) for body in blocks(text, language)] for text in (first, second))
        if one != other:
            wrong.append(f"{twin.name}: its {language} blocks are not those of {page.name}")
    return wrong


def links(path: Path) -> list[str]:
    text = FENCE.sub("", path.read_text("utf-8"))
    return [f"{path.name}: no file {target}" for target in LINK.findall(text) if not (path.parent / target).exists()]


def usage(path: Path) -> list[str]:
    wrong = []
    for body in blocks(path.read_text("utf-8"), "bash"):
        for line in commands(body):
            for part in re.split(r"\||&&|;", line):
                if not re.match(r"\s*(\S*/)?kb\s", part):
                    continue
                try:
                    words = shlex.split(part, comments=True)[1:]
                except ValueError:
                    continue
                plain = [word for word in words if not word.startswith("-")]
                name = plain[0] if plain else None
                if name and (" " in name or "." in name):  # a question or a log: `kb "CUDA out of memory"`
                    name, words = "search", ["search", *words]
                command = COMMANDS.get(name) if name else cli
                if isinstance(command, click.Group) and len(plain) > 1:
                    command = command.get_command(click.Context(command), plain[1])
                if "--" in words:  # what follows is another program's
                    words = words[: words.index("--")]
                if command is None:
                    wrong.append(f"{path.name}: there is no command {name!r}: {line}")
                    continue
                known = {option for parameter in command.params for option in parameter.opts} | {"-h", "--help", "-"}
                wrong += [
                    f"{path.name}: {name} has no option {word!r}: {line}"
                    for word in words
                    if word.startswith("-") and word.split("=")[0] not in known
                ]
    return wrong


def named_tests(path: Path) -> list[str]:
    """`test_cli.py::test_show` must be in that file, a bare `test_show` in any."""
    wrong = []
    for mark in MARK.findall(path.read_text("utf-8")):
        if found := TEST.fullmatch(mark):
            file, name = found.groups()
            if (file and file not in TESTS) or (
                name and name not in (TESTS[file] if file else set().union(*TESTS.values()))
            ):
                wrong.append(f"{path.name}: there is no {mark}")
        elif (found := MAKE.fullmatch(mark)) and not re.search(rf"^{found[1]}:", MAKEFILE, re.MULTILINE):
            wrong.append(f"{path.name}: the Makefile has no {found[1]}")
    return wrong


def rows(path: Path) -> list[str]:
    """What is wrong with a table of the checks: each of the 36 has a row, and something that shows it."""
    found = re.findall(
        r"^\| (\d+) \|[^|]+\|([^|]*)\| (?:default|crash|nightly) \|$", path.read_text("utf-8"), re.MULTILINE
    )
    wrong = [f"{path.name}: check {number} names nothing that shows it" for number, shown in found if "`" not in shown]
    if [int(number) for number, _ in found] != [*range(1, CHECKS + 1)]:
        wrong.append(f"{path.name}: its rows are not the checks 1 to {CHECKS}")
    return wrong


def helps() -> list[str]:
    return [f"kb {name} has no help" for name, command in COMMANDS.items() if not command.help] + [
        f"kb {name} {option.name} has no help"
        for name, command in COMMANDS.items()
        for option in command.params
        if isinstance(option, click.Option) and not option.help
    ]


def main() -> int:
    wrong = helps()
    for page in PAGES:
        wrong += twins(page)
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]):
        wrong += links(path) + usage(path) + named_tests(path)
    for name in ("reliability.md", "reliability.zh.md"):
        wrong += rows(ROOT / "docs" / name)
    print("\n".join(wrong) if wrong else "the docs agree with the program")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
