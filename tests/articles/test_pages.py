"""The free-form reader, step by step: lines, blocks, tags, issues, and how it tells what it did."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import SHIPPED, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.articles.lines import classify
from kb.scraped import parse, parse_and_tell
from kb.scraped.blocks import Block, blocks_of
from kb.scraped.explain import passages
from kb.scraped.markup import plain_lines
from kb.scraped.records import find_issues, title_of
from kb.scraped.tagger import STATES, Tagger, open_tagger

CASES = Path(__file__).parent / "cases"


def blocks(text: str) -> list[Block]:
    lines, _ = classify(text.splitlines(), 0)
    return blocks_of(plain_lines(lines))


# --- lines and blocks -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("== It hangs ==\n\nText.", ["heading It hangs", "text Text."]),
        ("It hangs\n--------\n\nText.", ["heading It hangs", "text Text."]),
        ("<h3 id='x'>It <b>hangs</b></h3>\n<p>A &lt;pid&gt; is left.</p>", ["heading It hangs", "text A <pid> is left."]),
        ("<details>\n<summary>It hangs</summary>\n\nText.\n</details>", ["text It hangs", "text Text."]),
        ("Text <!-- not\nshown --> ends.", ["text Text", "text ends."]),
        ("- ## It hangs {#hang}\n\n  Text.", ["heading It hangs", "text Text."]),
        ("A line that is wrapped by its author at a width of\nabout fifty columns, goes on. Then another.",
         ["text A line that is wrapped by its author at a width of about fifty columns, goes on.", "text Then another."]),
        ("这台机器的磁盘满了。清理旧日志即可！\n\n- 一\n- 二", ["text 这台机器的磁盘满了。", "text 清理旧日志即可！", "text 一", "text 二"]),
        ("Call `a? b.` once. Done.", ["text Call `a? b.` once.", "text Done."]),
        ("| Error | Fix |\n|---|---|\n| E1 | `a\\|b` |", ["cell Error", "cell Fix", "cell E1", "cell `a\\|b`"]),
        ("<table><tr><th>Error</th><th>Fix</th></tr>\n<tr><td>E1</td><td>retry</td></tr></table>",
         ["cell Error", "cell Fix", "cell E1", "cell retry"]),
        ("```\nRuntimeError: x\n  y\n```", ["code RuntimeError: x\n  y"]),
        ("首先将\nmap_num_proc\n参数设置为1", ["text 首先将 `map_num_proc` 参数设置为1"]),
        ("-\n\n换一块盘", ["text 换一块盘"]),
        ("先看日志。 -\n换一块盘", ["text 先看日志。", "text 换一块盘"]),
        ("One long line of a post that nobody wrapped, however long it may be.\nDo this",
         ["text One long line of a post that nobody wrapped, however long it may be.", "text Do this"]),
        ("Keep `<image>` and <|pad|>.", ["text Keep `<image>` and <|pad|>."]),
    ],
)  # fmt: skip
def test_blocks(text: str, expected: list[str]) -> None:
    assert [f"{block.kind} {block.text}" for block in blocks(text)] == expected


POST = """清理缓存
先看看还剩多少:
# 查看显存
import torch
free, total = torch.cuda.mem_get_info()
if free < total // 2:
    torch.cuda.empty_cache()
RuntimeError: CUDA out of memory
Then restart the service and look at its log:
systemctl restart serving
"""


def test_code_without_fences_is_code_and_comments_are_no_headings() -> None:
    assert [block.kind for block in blocks(POST)] == ["text", "text", "code", "text", "text", "code"]
    assert blocks(POST)[2].text.startswith("# 查看显存\nimport torch")


@pytest.mark.parametrize("text", ["# One\n\nText.\n\n## Two\n\n# Three\n\nText.", "# Restart the service\n\nIt hangs."])
def test_headings_are_no_comments(text: str) -> None:
    assert all(block.kind != "code" for block in blocks(text))


WORDS = st.sampled_from(
    ["It fails. ", "因为磁盘满了。", "```\n", "# ", "- ", "> ", "\n", "\n\n", "**Fix:** ", "| a | b |\n", "<br>", "<li>x</li>",
     "`code` ", "1. ", "---\n", "== x ==\n", "Error: no space\n", "  "]
)  # fmt: skip


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(WORDS, max_size=30).map("".join))
def test_every_character_is_in_a_block(text: str) -> None:
    """But marks: what is left of the text without its blocks has no letters, unless a comment or a tag was cut out."""
    lines = plain_lines(classify(text.splitlines(), 0)[0])
    shown = "".join(block.text for block in blocks_of(lines))
    letters = re.compile(r"[A-Za-z\u4e00-\u9fff]")
    wanted = "".join(letters.findall("".join(line.text for line in lines if line.kind not in ("fence", "blank"))))
    assert "".join(letters.findall(shown)) == wanted


# --- tags -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chain() -> Tagger:
    rng = np.random.default_rng(0)
    count = len(STATES)
    return Tagger({"steps": rng.normal(size=(3, count, count)), "start": rng.normal(size=count)})


def sequences(tagger: Tagger, scores: np.ndarray, steps: np.ndarray) -> dict[tuple[int, ...], float]:
    a = tagger.arrays
    return {
        path: a["start"][path[0]]
        + sum(scores[t, state] for t, state in enumerate(path))
        + sum(a["steps"][steps[t]][path[t - 1], path[t]] for t in range(1, len(path)))
        for path in itertools.product(range(len(STATES)), repeat=len(scores))
    }


@pytest.mark.parametrize("seed", range(4))
def test_the_best_sequence_and_its_chances_are_those_of_all_sequences(chain: Tagger, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, steps = rng.normal(size=(3, len(STATES))), rng.integers(0, 3, size=3)
    every = sequences(chain, scores, steps)
    assert tuple(chain.best(scores, steps)) == max(every, key=lambda path: every[path])
    weights = {path: np.exp(value) for path, value in every.items()}
    whole = sum(weights.values())
    chances = chain.chances(scores, steps)
    for t, state in ((0, 0), (1, 5), (2, 11)):
        expected = sum(weight for path, weight in weights.items() if path[t] == state) / whole
        assert chances[t, state] == pytest.approx(expected)


def test_the_network_is_the_one_that_was_fitted() -> None:
    """The same scores from numpy as from the network that torch fits."""
    torch = pytest.importorskip("torch", reason="fitting needs torch")
    import sys

    sys.path.insert(0, str(SHIPPED.parent / "scripts" / "reader"))
    import train
    from pages import parse_tagged

    page = parse_tagged(
        "a",
        "⟦lang: en⟧\n⟦title⟧# It hangs\n\n⟦cause⟧No disk. ⟦fix⟧Free some:\n\n```\nrm x\n```\n\n## More\n\n⟦other⟧- a\n- b\n",
    )
    sample = train.sample_of(page)
    assert sample is not None
    torch.manual_seed(0)
    network = train.Network(sample.meaning.shape[1], drop=0.5).eval()
    batch = train.batches([sample])[0]
    with torch.no_grad():
        fitted = network.scores(batch)[0].numpy()
    np.testing.assert_allclose(Tagger(network.arrays()).scores(sample.view, sample.meaning), fitted, atol=2e-3)


# --- issues ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("title symptom cause fix", [(0, [1], [2], [3])]),
        ("other title fix other title cause", [(1, [], [], [2]), (4, [], [5], [])]),
        ("title other fix other", [(0, [1], [], [2])]),
        ("question answer title fix", [(2, [], [], [3])]),
        ("title fix question answer", [(0, [], [], [1])]),
        ("title other", [(0, [1], [], [])]),
        ("title title fix", [(0, [1], [], [2])]),
        ("title", []),
        ("fix cause symptom", [(0, [2], [1], [])]),
        ("other fix", []),
        ("boilerplate title label fix label cause", [(1, [], [5], [3])]),
    ],
)
def test_issues_of_tags(tags: str, expected: list[tuple[int, list[int], list[int], list[int]]]) -> None:
    names = tags.split()
    page = [Block("text", f"Block {n}.", n, 0, n, 8) for n in range(len(names))]
    found = find_issues(page, names)
    assert [(one.title, *(one.fields[name] for name in ("symptom", "cause", "fix"))) for one in found] == expected


@pytest.mark.parametrize(
    ("text", "tags", "fix"),
    [
        ("Title.\n\n1. If the disk is full, go on. Then delete logs.\n2. Restart.", "title cause fix fix", [1, 2, 3]),
        ("Title.\n\nDo this first.\n\nThe window opens.\n\nDo that next.", "title fix other fix", [1, 2, 3]),
        ("Title.\n\nThere are two ways:\n\n- A new disk.\n- Less data.", "title fix other other", [1, 2, 3]),
        ("Title.\n\nDo this first.\n\n## More\n\nDo that next.", "title fix other fix", [1, 3]),
        ("## Title\n\nDo this first.\n\n### More\n\nDo that next.", "title fix other fix", [1, 3]),
        ("## Title\n\nDo this first.\n\n## How to drop a table\n\nDrop it.", "title fix other fix", [1]),
        ("# Title\n\n## Step 1\n\nLook at it.\n\n## Step 2\n\nStart it.", "title cause fix fix fix", [1, 2, 3, 4]),
        ("Title.\n\nIt was the disk. Replace it.", "title cause fix", [2]),
    ],
)
def test_a_remedy_stays_whole(text: str, tags: str, fix: list[int]) -> None:
    (issue,) = find_issues(blocks(text), tags.split())
    assert issue.fields["fix"] == fix


def test_two_halves_of_one_issue_are_joined() -> None:
    text = (
        "The NoneType error\n\nIt stops.\n\nThe deque error\n\nIt hangs.\n\nOn the NoneType error\n\nAdd a check.\n\n"
        "On the deque error\n\nUpgrade it."
    )
    page, tags = blocks(text), "title symptom title symptom title fix title fix".split()
    assert [(issue.title, issue.fields["fix"]) for issue in find_issues(page, tags)] == [(0, [5]), (2, [7])]


@pytest.mark.parametrize(
    ("text", "fixes"),
    [
        ("## RuntimeError: no disk\n\nThe disk is full.\n\n### Fix\n\n| Size | Do |\n|---|---|\n| 1 GB | delete logs |\n"
         "| 2 GB | add a disk |\n\nAfter that, restart the service.\n", ["delete logs", "add a disk", "restart the service."]),
        ("| Error | Cause | Fix |\n|---|---|---|\n| E1: no disk |  | delete logs |\n| E2: no memory | too small | add memory |\n",
         ["delete logs", "add memory"]),
    ],
)  # fmt: skip
def test_tables_are_not_cut(text: str, fixes: list[str]) -> None:
    fix = "\n".join(record.fix for record in parse(text.encode(), path="a.md").records)
    assert [part for part in fixes if part not in fix] == []


@pytest.mark.parametrize(
    ("text", "tags", "symptom", "cause", "fix"),
    [
        ("T\n\nIt stops.\n\nDon't try\n\nWaiting.\n\nDo this\n\nStart it.",
         "title symptom label symptom label fix", [1], [], [5]),
        ("T\n\n原因分析\n\n- 一\n- 二\n- 三", "title label cause fix cause", [], [2, 3, 4], []),
        ("T\n\nCause\n\nThe disk.", "title cause other", [], [2], []),
        ("T\n\nT\n\nIt stops.\n\nStart it.", "title title symptom fix", [2], [], [3]),
    ],
)  # fmt: skip
def test_labels_decide_what_is_unsure(
    text: str, tags: str, symptom: list[int], cause: list[int], fix: list[int]
) -> None:
    (issue,) = find_issues(blocks(text), tags.split())
    assert issue.fields == {"symptom": symptom, "cause": cause, "fix": fix}


@pytest.mark.thorough
def test_a_long_page_is_tagged_in_parts() -> None:
    text = "## Error: no disk\n\nThis is because the disk is full.\n\nDelete old logs.\n\n"
    few, many = (parse((text * count).encode(), path="a.md").records for count in (3, 900))
    assert len(few) == 3
    assert len(many) >= 895


def test_every_question_adds_the_questions() -> None:
    page = [Block("text", f"Block {n}.", n, 0, n, 8) for n in range(4)]
    tags = ["question", "answer", "title", "fix"]
    assert [issue.title for issue in find_issues(page, tags, every_question=True)] == [0, 2]


@pytest.mark.parametrize(
    "page",
    [
        "Q: The loss is nan after some steps. Why?\n\nA: The learning rate is too high for fp16. Use bf16 or halve it.\n",
        "问：训练几步后报错退出。loss 变成 nan，为什么？\n\n答：fp16 下学习率太高。改用 bf16，或者把学习率减半。\n",
    ],
    ids=["en", "zh"],
)
def test_a_marked_question_of_two_sentences_is_one_title(page: str) -> None:
    (record,) = parse(page.encode(), path="a.md").records
    question = page.partition("\n\n")[0]
    assert record.title == question.partition("：" if "：" in question else ": ")[2]
    assert "fp16" in record.cause + record.fix
    assert "bf16" in record.fix


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Q3: Why does it hang?", "Why does it hang?"),
        ("问：为什么卡住？", "为什么卡住？"),
        ("2.1 It hangs", "It hangs"),
        ("问题一：显存不足", "显存不足"),
        ("`E1: no disk`", "`E1: no disk`"),
    ],
)
def test_titles(text: str, title: str) -> None:
    assert title_of(Block("heading", text, 0, 0, 0, len(text))) == title


# --- what it tells --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.md")))
def test_every_line_is_accounted_for(name: str) -> None:
    data = (CASES / name).read_bytes()
    article, reading = parse_and_tell(data, path=name)
    if reading is None:
        return
    count = len(data.splitlines())
    told = passages(reading, count)
    assert {no for one in told for no in range(one.first, one.last + 1)} >= set(range(1, count + 1))
    assert all(0 <= one.chance <= 1.001 for one in told)
    assert {one.record for one in told if one.record} == set(range(1, len(article.records) + 1))


def test_the_reasons_name_features() -> None:
    data = b"# Notes\n\n## RuntimeError: no disk\n\nThis is because the disk is full.\n\nDelete old logs.\n"
    _, reading = parse_and_tell(data, path="a.md")
    assert reading is not None
    told = {one.text: one for one in passages(reading, 7)}
    assert told["RuntimeError: no disk"].tag == "title"
    assert told["RuntimeError: no disk"].because
    assert all(re.search(r" [+]\d+\.\d$", reason) for one in told.values() for reason in one.because)


def test_an_article_in_our_own_form_is_not_explained() -> None:
    path = next(SHIPPED.glob("en/*.md"))
    assert parse_and_tell(path.read_bytes(), path=f"en/{path.name}")[1] is None


def test_every_block_is_in_a_record_or_a_remark() -> None:
    for path in sorted(CASES.glob("*.md")):
        article, reading = parse_and_tell(path.read_bytes(), path=path.name)
        if reading is None:
            continue
        parts = [r.text for r in article.remarks]
        parts += [text for r in article.records for text in (r.title, r.symptom, r.cause, r.fix)]
        kept = re.sub(r"\W+", "", "\n".join(parts))
        for block, tag in zip(reading.blocks, reading.tags, strict=True):
            text = re.sub(r"\W+", "", block.text)
            assert tag in ("label", "title") or text[len(text) // 2 :][-40:] in kept, (path.name, block.text)


# --- the project ----------------------------------------------------------------------------------------------------


PROBLEM = "\n\n## RuntimeError: no disk\n\nThis is because the disk is full.\n\nDelete old logs.\n"


@pytest.mark.parametrize(
    ("path", "text", "project"),
    [
        ("a.md", "# Kafka FAQ" + PROBLEM, "Kafka"),
        ("a.md", "# Zorblax项目中训练卡住的问题\n\nZorblax项目在多卡训练时卡住。\n", "Zorblax"),
        ("zorblax-faq.md", "# FAQ" + PROBLEM + "\nRestart Zorblax.\n", "Zorblax"),
        ("a.md", "# Notes\n\nlibGL.so.1 is part of it." + PROBLEM + "\nThis libGL.so.1 is of OpenCV, so install OpenCV.\n",
         "OpenCV"),
        ("a.md", "---\nproject: X\n---\n# Kafka FAQ" + PROBLEM, "X"),
        ("a.md", "# 记录\n\n昨天重启之后一切正常。\n", None),
        ("a.md", "# Bad Gateway\n\n**Problem:** the site says Bad Gateway.\n\n**Cause:** nothing listens.\n\n"
         "**Fix:** start it and Bad Gateway is gone.\n", None),
    ],
)  # fmt: skip
def test_the_project(path: str, text: str, project: str | None) -> None:
    from kb.scraped.project import guess_project

    article, _ = parse_and_tell(text.encode(), path=path)
    named = {record.project for record in article.records}
    if not named:  # the page holds no record, so that the guess is asked for by itself
        named = {guess_project(article.title, [line for line in text.splitlines() if line], (), path)}
    assert named == {project}


def test_the_shipped_weights_are_whole() -> None:
    arrays = open_tagger().arrays
    assert arrays["out"].shape[1] == len(STATES) + 1
    assert all(np.isfinite(array).all() for array in arrays.values())


def test_pages_of_the_same_text_are_read_alike() -> None:
    data = (CASES / sorted(path.name for path in CASES.glob("*.md"))[0]).read_bytes()
    assert parse(data, path="a.md") == parse(data, path="a.md")
