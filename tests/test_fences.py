"""kb.text.fences against a table, against markdown-it-py as the oracle, and against time."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kb.text import fences
from kb.text.fences import Code, Prose

ORACLE = MarkdownIt("commonmark").enable("table")

# Text, and its blocks: prose as it is, code as (language, text).
CASES: dict[str, tuple[str, list[str | tuple[str, str]]]] = {
    "empty": ("", [""]),
    "no fence": ("a\nb", ["a\nb"]),
    "one": ("a\n```\nx\n```\nb", ["a", ("", "x"), "b"]),
    "language": ("```python title=a.py\nx\n```", [("python", "x")]),
    "nothing inside": ("```\n```", [("", "")]),
    "blank lines inside": ("```\n\nx\n\n```\n", [("", "\nx\n"), ""]),
    "tildes": ("~~~ sh `a`\n```\n~~~", [("sh", "```")]),
    "a longer fence holds a shorter one": ("````\n```\nx\n```\n````", [("", "```\nx\n```")]),
    "a longer fence closes a shorter one": ("```\nx\n`````\ny", [("", "x"), "y"]),
    "another mark does not close": ("```\nx\n~~~\n```", [("", "x\n~~~")]),
    "a fence with a language does not close": ("```\nx\n```sh\n```", [("", "x\n```sh")]),
    "never closed": ("a\n```\nx\n\n## y", ["a", ("", "x\n\n## y")]),
    "an end and nothing more": ("```", [("", "")]),
    "closed with an indent": ("```\nx\n   ```\ny", [("", "x"), "y"]),
    "an indent of four does not close": ("```\nx\n    ```\n", [("", "x\n    ```\n")]),
    "with an indent": ("  ```\n  x\n y\n  ```", [("", "x\ny")]),
    "an indent of four is indented code": ("a\n\n    ```\n    x\n    ```", ["a\n\n    ```\n    x\n    ```"]),
    "in a list item": ("1. a\n\n   ```bash\n   x\n     y\n   ```\n2. b", ["1. a\n", ("bash", "x\n  y"), "2. b"]),
    "in a list in a list": ("- a\n  - b\n    ```\n    x\n    ```", ["- a\n  - b", ("", "x")]),
    "a list item begins with it": ("1. ```sh\n   x\n   ```\n2. b", [("sh", "x"), "2. b"]),
    "a list item ends it": ("- ```\n  x\n\ny", [("", "x\n"), "y"]),
    "in a quote": ("> a\n> ```\n> x\n> ```\n> b", ["> a", ("", "x"), "> b"]),
    "a quote ends it": ("> ```\n> x\ny", [("", "x"), "y"]),
    "with tabs": ("- a\n\n\t```\n\tx\n\t```", ["- a\n", ("", "x")]),
    "within a line": ("a ``` b\n`` ```\n```` c ` ````", ["a ``` b\n`` ```\n```` c ` ````"]),
    "after a table": ("|a|\n|-|\n```\nx\n```", ["|a|\n|-|", ("", "x")]),
    "below HTML": ("<details>\n```\nx\n```\n</details>", ["<details>", ("", "x"), "</details>"]),
    "in a comment": ("<!--\n```\nx\n```\n-->", ["<!--", ("", "x"), "-->"]),
    "other line ends": ("a\r\n```\r\nx\r\n```\r\nb\rc", ["a", ("", "x"), "b\nc"]),
    "Chinese": ("报错：\n```\n显存不足\n```\n解决：", ["报错：", ("", "显存不足"), "解决："]),
}


@pytest.mark.parametrize(("text", "blocks"), CASES.values(), ids=CASES)
def test_blocks(text: str, blocks: list[str | tuple[str, str]]) -> None:
    found = fences.split(text)
    assert [block.text if isinstance(block, Prose) else (block.language, block.text) for block in found] == blocks


@pytest.mark.parametrize(
    ("text", "closing", "lead"),
    [
        ("````py\nx", "````", ""),
        ("   ~~~\n   x", "   ~~~", "   "),
        ("12) ```\n    x", "    ```", "12) "),
        ("> - ```\n>   x", ">   ```", "> - "),
    ],
)
def test_what_would_close_a_block(text: str, closing: str, lead: str) -> None:
    (code,) = fences.split(text)
    assert isinstance(code, Code)
    assert (code.closed, code.closing, code.lead) == (False, closing, lead)
    assert code.inside == text.split("\n")[1:]
    (closed,) = fences.split(f"{text}\n{closing}")
    assert isinstance(closed, Code)
    assert closed.closed
    assert (closed.text, closed.inside) == (code.text, code.inside)


def test_prose_lines() -> None:
    assert fences.prose_lines("a\n- ```\n  x\n  ```\nb") == ["a", "", "", "", "b"]


# --- laws -----------------------------------------------------------------------------------------------------------

LINES = (
    "", "text", "    deep", "  under", "   under", "# One", "===", "---", "***", "- item", "1. item", "10) item",
    "- - x", "-", "1.", "- # head", "> quote", "a | b", "|---|---|", "[a]: /x '", "\ttab", "text ```", "```", "```py",
    "  ```", "   ```", "     ```", "\t```", "````", "``` x `", "```\t", "~~~", "~~~ x `y", "- ```", "1. ```sh",
    "   1. ~~~", "- \t```", "-     ```", "> ```", "> > ```", "+ > ```py",
)  # fmt: skip

texts = st.lists(st.sampled_from(LINES), min_size=1, max_size=9).map("\n".join)
law = settings(max_examples=examples(400), deadline=None, derandomize=True, database=None)


@law
@given(st.one_of(texts, st.text(alphabet="`~ \t\r\n->1.a", max_size=40)))
def test_no_line_is_lost(text: str) -> None:
    blocks = fences.split(text)
    lines = [line for block in blocks for line in block.lines]
    assert lines == text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    first = 0
    for block in blocks:
        assert block.first == first
        first += len(block.lines)
    assert not any(isinstance(a, Prose) and isinstance(b, Prose) for a, b in pairwise(blocks))


@law
@given(st.one_of(texts, st.text(alphabet="`~ \t\n->1.a", max_size=40)))
def test_fences_are_those_of_markdown_it(text: str) -> None:
    found = [(b.first, b.language, b.text) for b in fences.split(text) if isinstance(b, Code)]
    expected = [
        (token.map[0], (token.info.split() or [""])[0], token.content.removesuffix("\n"))
        for token in ORACLE.parse(text + "\n")
        if token.type == "fence" and token.map
    ]
    assert found == expected


@law
@given(texts)
def test_the_fast_way_agrees(text: str) -> None:
    lines = text.split("\n")
    fast = fences._plain(text, lines)
    assert fast is None or fast == list(fences._nested(text, lines))


@law
@given(texts)
def test_a_block_can_be_closed(text: str) -> None:
    lines = text.split("\n")
    for block in fences.split(text):
        if isinstance(block, Code) and not block.closed:
            end = block.first + len(block.lines)
            closed = fences.split("\n".join([*lines[:end], block.closing, *lines[end:]]))
            assert [b.closed for b in closed if isinstance(b, Code) and b.first == block.first] == [True]


@pytest.mark.thorough
@pytest.mark.parametrize("unit", ["```\nx\n", "- ```\n", "> ```\n", "[a\n", "- ", "> ", "1. a\n   ```\n", "- a\n"])
def test_time_grows_with_the_text(unit: str) -> None:
    def seconds(count: int) -> float:
        text = unit * count + "\n  ```\n"
        start = time.process_time()
        fences.split(text)
        return time.process_time() - start

    size = 400
    few = min(seconds(size) for _ in range(3))
    assert min(seconds(4 * size) for _ in range(3)) < 10 * few + 0.05
