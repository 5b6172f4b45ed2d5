"""kb.brief: what to try first of a fix; kb.text.width: where lines end."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from conftest import EMPTY_RECORD
from hypothesis import given
from hypothesis import strategies as st

from kb.brief import (
    answer_lines,
    cause_sentence,
    first_to_try,
    fix_line,
    plain,
    searched_line,
    show_line,
    steps_of,
    to_try,
)
from kb.brief.prose import sentences
from kb.records import IssueRecord
from kb.text.width import cells, cut, rows, wrap

FENCE = "```"


def record_of(fix: str, **fields: object) -> IssueRecord:
    return replace(EMPTY_RECORD, fix=fix, **fields)  # type: ignore[arg-type]


def told(fix: str, room: int = 8, width: int = 80) -> list[str]:
    return [line.text for line in to_try(record_of(fix), room, width)]


@pytest.mark.parametrize(
    ("fix", "lines"),
    [
        ("", []),
        ("Just wait.", ["  Just wait."]),
        ("1. Wait.", ["  Wait."]),
        ("1. Wait. *(reported)*\n2. Check: it runs.", ["  Wait. (reported)"]),
        ("1. One.\n2. Two.\n3. Three.\n4. Four.", ["  1. One.", "  2. Two.", "  3. Three."]),
        ("- One.\n- Two.", ["  1. One.", "  2. Two."]),
        ("1、先停。*（推断）*\n2、再起。", ["  1. 先停。（推断）", "  2. 再起。"]),
        ("Restart it. It comes back.\n\nUpdate it:\n\n```bash\nmake new\n```", None),
        (
            "1. Update: *(maintainer)*\n\n   ```bash\n   pip install -U x\n   ```",
            ["  Update:", "       pip install -U x"],
        ),
        ("1. Update.\n\n   ~~~\n   a\n\n     b\n   ~~~", ["  Update.", "       a", "", "         b"]),
        ("10. Ten:\n\n    ```\n    a\n    ```", ["  Ten:", "       a"]),
        ("```bash\nmake\n```", ["       make"]),
        ("1. Look: is it `on`? Then wait.", ["  Look: is it `on`? Then wait."]),
        ("1. Is it on? Switch it on.", ["  Is it on? Switch it on."]),
        (
            "1. Change the setting. Long words. Set `a.b = 1`. Then go.",
            ["  Change the setting. Long words. Set `a.b = 1`."],
        ),
        ("1. Either of these:\n   - `a = 1`.\n   - `b = 2`.", ["  Either of these: - `a = 1`."]),
        ("1. Nothing follows:", ["  Nothing follows."]),
        ("1. 后面没有了：", ["  后面没有了。"]),
    ],
)
def test_what_to_try(fix: str, lines: list[str] | None) -> None:
    if lines is None:
        lines = ["  1. Restart it. It comes back.", "  2. Update it:", "       make new"]
    assert told(fix) == lines


WARNED = """1. Clear the cache: *(reasoned)*

   ```bash
   rm -rf ~/.cache/x
   ```

   **Careful:** it is gone for good. Nothing else happens.
"""


@pytest.mark.parametrize(
    ("fix", "warning"),
    [
        (WARNED, "Careful: it is gone for good."),
        (WARNED.replace("**Careful:** it", "Warning: it"), "Warning: it is gone for good."),
        (WARNED.replace("**Careful:** it is gone for good.", "**注意：**删了就没了。"), "注意：删了就没了。"),
        (WARNED.replace("**Careful:** it is gone for good.", "先停服务。**注意：**删了就没了。"), "注意：删了就没了。"),
        (WARNED.replace("**Careful:** it", "**Warning**\n\n   It"), "Warning It is gone for good."),
        (WARNED.replace("Clear the cache:", "Clear the cache; **this cannot be undone**:"), "this cannot be undone"),
    ],
)
def test_a_warning_stands_above_its_command(fix: str, warning: str) -> None:
    lines = told(fix)
    assert warning in " ".join(lines[:-1])
    assert lines[-1] == "       rm -rf ~/.cache/x"
    assert not lines[-2].rstrip().endswith(":") or "undone" in warning


def test_a_warning_below_a_command_of_a_page_without_a_list() -> None:
    fix = f"Clear the cache.\n\n{FENCE}\nrm -rf x\n{FENCE}\n\nWarning: it is gone.\n\nThen start **Grafana**."
    assert told(fix) == ["  1. Clear the cache. Warning: it is gone.", "       rm -rf x", "  2. Then start Grafana."]


def test_what_does_not_fit_is_named() -> None:
    fix = "1. Run this:\n\n" + f"   {FENCE}python\n" + "   a = 1\n" * 20 + f"   {FENCE}\n2. Or this.\n"
    assert told(fix) == ["  1. Run this. (20 lines of code: see below.)", "  2. Or this."]
    long = "python -c '" + "x" * 500 + "'"
    lines = told(f"1. Run {'this ' * 80}:\n\n   {FENCE}\n   {long}\n   {FENCE}\n", room=20)
    assert lines[-1].strip() == long  # a command is never cut


def test_of_many_blocks_the_first_is_shown() -> None:
    fix = f"1. Here:\n\n   {FENCE}\n   one\n   {FENCE}\n\n   There:\n\n   {FENCE}\n   two\n   {FENCE}\n"
    assert told(fix) == ["  Here:", "       one", "       …"]


@pytest.mark.parametrize(
    ("fix", "line"),
    [
        ("1. Update:\n\n   ```bash\n   pip install -U x\n   ```", "Update: `pip install -U x`"),
        ("1. Update.\n\n   ```bash\n   # first\n   cd /a\n   make x\n   make y\n   ```", "Update. `make x` …"),
        ("1. 升级：\n\n   ```bash\n   pip install x\n   ```", "升级：`pip install x`"),
        ("1. Loop:\n\n   ```bash\n   for i in a; do\n     x\n   done\n   ```\n2. Set `a=1`.", "Set `a=1`."),
        ("1. Think.\n\n   ```python\n   def f():\n       pass\n   ```", "Think."),
        ("1. Tick:\n\n   ```bash\n   echo `date`\n   ```", "Tick: `` echo `date` ``"),
        (WARNED, "Clear the cache. Careful: it is gone for good. `rm -rf ~/.cache/x`"),
        ("", ""),
    ],
)
def test_the_first_command_in_one_line(fix: str, line: str) -> None:
    assert first_to_try(record_of(fix)) == line
    assert fix_line(record_of(fix)) == f"Fix: {line or '(kb found no fix in the article)'}"


def test_pages_that_were_not_written_for_this() -> None:
    """Prose with commands between, as forums have it."""
    fix = "Solved it!\n\n> quote\n\nI ran\n\n    make clean\n\nand then `make`."
    assert [step.number for step in steps_of(fix)] == list(range(1, len(steps_of(fix)) + 1))
    assert told("x\r\n\r\n```\r\nmake\r\n```")[-1] == "       make"


# --- prose ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Use e.g. this. Then", ["Use e.g. this.", "Then"]),
        ("Run `a. B`. Then", ["Run `a. B`.", "Then"]),
        ("先停。再起！好？对", ["先停。", "再起！", "好？", "对"]),
        ("（先停。）再起。", ["（先停。）", "再起。"]),
        ("**Careful:** no. Yes.", ["**Careful:** no.", "Yes."]),
        ("**All of it.** More.", ["**All of it.**", "More."]),
        ("停。**注意：**起。", ["停。", "**注意：**起。"]),
        ("torch 2.6 and 2.7.", ["torch 2.6 and 2.7."]),
        ("", []),
    ],
)
def test_sentences(text: str, said: list[str]) -> None:
    assert sentences(text) == said


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("**a** and *b*, `**c**`", "a and b, `**c**`"),
        ("[`x#1`](x.md) or [the page](https://a.example/b)", "`x#1` or the page (https://a.example/b)"),
        ("**`a` b**", "`a` b"),
        ("2 * 3 * 4 and __init__", "2 * 3 * 4 and __init__"),
        ("\ue0000\ue000 `a`", "0 `a`"),
    ],
)
def test_plain(markdown: str, text: str) -> None:
    assert plain(markdown) == text


def test_a_cause_that_only_leads() -> None:
    assert cause_sentence(replace(EMPTY_RECORD, cause="It is one of:\n\n- a\n- b")) == "It is one of:"


# --- lines ----------------------------------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab c，。（）中文字 `.,;:\n"), max_size=120)


@given(TEXTS, st.integers(20, 100))
def test_wrapping_loses_nothing_and_keeps_the_width(text: str, width: int) -> None:
    lines = wrap(text, width, first="- ", indent="  ")
    assert "".join("".join(lines).removeprefix("- ").split()) == "".join(text.split())
    for line in lines:
        assert cells(line) <= width or "`" in line or not re.search(r"[\s中文字]\S", line[2:])


@given(TEXTS, st.integers(5, 100))
def test_a_cut_keeps_code_whole(text: str, most: int) -> None:
    short = cut(text, most)
    assert cells(short) <= most or cells(text) <= most
    assert short == text or text.startswith(short.removesuffix("…").rstrip())


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("ab cd", 5, ["ab cd"]),
        ("ab cd", 4, ["ab", "cd"]),
        ("中文字", 4, ["中文", "字"]),
        ("中文。字", 4, ["中", "文。", "字"]),
        ("a `b c d` e", 5, ["a", "`b c d`", "e"]),
        ("", 5, []),
    ],
)
def test_wrap(text: str, width: int, lines: list[str]) -> None:
    assert wrap(text, width) == lines


def test_words_around_an_issue_agree_with_number_and_reader() -> None:
    assert searched_line("en", size=1, where="here") == "Searched: 1 issue, here"
    assert searched_line("en", size=2, where="here") == "Searched: 2 issues, here"
    record = replace(EMPTY_RECORD, lang="zh")
    assert show_line(record).endswith("查看全文")
    assert show_line(record, "en").endswith("shows the whole of it")


def test_a_chinese_character_takes_two_columns() -> None:
    assert [cells(text) for text in ("ab", "中a", "，", "e\u0301")] == [2, 3, 2, 1]
    assert rows(["", "x" * 81, "中" * 40], 80) == 4


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_width_is_used(width: int) -> None:
    record = record_of("1. Wait.", summary="word " * 60, title="T")
    lines = [line.text for line in answer_lines(record, width)]
    assert width - 6 <= max(map(cells, lines)) <= width
