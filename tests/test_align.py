"""How the encoder's training pairs are found: in catalogues, key files and documents; and what is no pair."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[1] / "scripts" / "encoder"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec
    assert spec.loader
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


align = load("align")

PO = r"""
#: a.rst:1
msgid "The queue is empty."
msgstr "队列为空。"

#, fuzzy
msgid "Guessed."
msgstr "猜的。"

msgid ""
"Two lines, \"quoted\", "
"one message."
msgstr ""
"两行，"
"一条消息。"

msgid "Not translated."
msgstr ""

#~ msgid "Gone."
#~ msgstr "没了。"
"""

XLIFF = """\ufeff<?xml version="1.0" encoding="utf-8"?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2"><file><body>
<trans-unit id="A"><source>File not found.</source><target state="translated">找不到文件。</target><note /></trans-unit>
<trans-unit id="B"><source>Only English.</source></trans-unit>
</body></file></xliff>"""

ENGLISH = """\
---
title: x
---
# Set up

Install the package first. It needs `CUDA 12`.

```bash
pip install thing
```

- Give it **two** cards.
- Set `NCCL_DEBUG=INFO`.

## When it hangs

| option | meaning |
|---|---|
| timeout | seconds to wait |

Look at the [log](log.md).
"""
CHINESE = """\
# 安装

先安装软件包，需要 `CUDA 12`。

```bash
pip install thing
```

- 给它 **两张** 卡。
- 设置 `NCCL_DEBUG=INFO`。

## 卡住的时候

| 选项 | 含义 |
|---|---|
| timeout | 等待的秒数 |

请看[日志](log.md)。
"""
SAME = [
    ("安装", "Set up"),
    ("先安装软件包，需要 `CUDA 12`。", "Install the package first. It needs `CUDA 12`."),
    ("给它 **两张** 卡。", "Give it **two** cards."),
    ("设置 `NCCL_DEBUG=INFO`。", "Set `NCCL_DEBUG=INFO`."),
    ("卡住的时候", "When it hangs"),
    ("选项", "option"),
    ("含义", "meaning"),
    ("timeout", "timeout"),
    ("等待的秒数", "seconds to wait"),
    ("请看[日志](log.md)。", "Look at the [log](log.md)."),
]

PAIRS = [
    ("训练时显存不足。", "Out of memory during training.", True),
    ("将 num_generations 设为 8。", "Set num_generations to 8.", True),
    ("超时", "timeout", True),
    ("请看下表。", "The following table lists every option of the launcher and what it is by default.", False),
    ("需要 PyTorch 2.4 和 CUDA 12.1。", "Needs Python 3.9 and gcc 11.", False),
    ("English only", "English only", False),
    ("中文", "中文", False),
    ("使用 DeepSpeed 和 accelerate 启动 transformers", "Use nothing of that kind to start", False),
]  # fmt: skip


def test_gettext() -> None:
    pairs = list(align.gettext(PO))
    assert pairs == [("队列为空。", "The queue is empty."), ("两行，一条消息。", 'Two lines, "quoted", one message.')]


def test_xliff() -> None:
    assert list(align.xliff(XLIFF)) == [("找不到文件。", "File not found.")]
    assert list(align.xliff("<not xml")) == []


def test_key_files() -> None:
    zh, en = '{"a": {"b": "停止"}, "c": "仅中文"}', '{"a": {"b": "Stop"}, "d": "English only"}'
    assert list(align.keyed(zh, en, ".json")) == [("停止", "Stop")]
    assert list(align.keyed("a=\\u505c\\u6b62\n", "# note\na = Stop\n", ".properties")) == [("停止", "Stop")]
    resx = '<root><data name="A"><value>{}</value></data></root>'
    assert list(align.keyed(resx.format("停止"), resx.format("Stop"), ".resw")) == [("停止", "Stop")]
    assert list(align.keyed("[", "{}", ".json")) == []


def test_documents_of_one_shape_are_paired_block_by_block() -> None:
    assert [pair for pair, _ in align.document(CHINESE, ENGLISH, ".md")] == SAME


def test_documents_of_another_shape_are_paired_by_what_they_share() -> None:
    """A paragraph more, an item less: what shares a name still finds its twin, and nothing is paired across."""
    changed = CHINESE.replace("## 卡住的时候", "译者补充的一段话，原文没有。\n\n## 卡住的时候").replace(
        "- 给它 **两张** 卡。\n", ""
    )
    found = [pair for pair, _ in align.document(changed, ENGLISH, ".md")]
    assert ("设置 `NCCL_DEBUG=INFO`。", "Set `NCCL_DEBUG=INFO`.") in found
    assert set(found) <= set(SAME)


def test_of_one_shape_but_not_the_same_text_is_no_pair() -> None:
    """The translator left out the first paragraph and added one at the end: the kinds agree, the texts do not."""
    english = "# A\n\nAn introduction that was left out, on the launcher's history and its authors.\n\nUse `pip`.\n"
    chinese = "# 甲\n\n用 `pip`。\n\n译者加的话。\n"
    found = [pair for pair, kind in align.document(chinese, english, ".md") if kind == "text"]
    assert ("用 `pip`。", english.split("\n\n")[1]) not in found


def test_bodies_join_a_title_and_its_first_paragraph() -> None:
    first, second = align.bodies(CHINESE, ENGLISH, ".md")
    assert first == ("安装", SAME[1][0], "Set up", SAME[1][1])
    assert second[0] == "卡住的时候"


@pytest.mark.parametrize(("zh", "en", "expected"), PAIRS)
def test_what_is_a_pair(zh: str, en: str, *, expected: bool) -> None:
    assert align.is_pair(zh, en) is expected


def test_markup_is_taken_off() -> None:
    assert (
        align.plain("See [the *log*](x.md) of `kb`<br/> at https://a.b/c &amp; wait.") == "See the log of kb at & wait."
    )
