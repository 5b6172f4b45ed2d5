# ruff: noqa: E501  lists of phrases
"""Posts without end: one problem each, as a blog or a question site shows it once scraping took its marks.

Headings are bare or numbered lines, code has no fence, bullets are torn from their text, blank lines are gone; author,
date, contents, other posts and share buttons stand between. The material is that of `layouts`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from layouts import Entry, Material, _chunks
from pages import Page, parse_tagged

from kb.scraped.labels import WORDS

_TITLES = {
    "zh": (
        "{}", "{}", "{}", "【报错解决】{}", "{}怎么办?", "如何解决{}?", "{}问题分析与解决方案", "{}的原因和解决办法",
        "踩坑记录：{}", "{}（已解决）", "解决{}", "修复：{}", "一次{}的排查", "{}问题的深度解析", "{} - 完美解决",
    ),
    "en": (
        "{}", "{}", "{}", "Fix: {}", "How to fix {}", "[Solved] {}", "{}: causes and fixes", "{} explained",
        "Troubleshooting {}", "{} - what it means and how to fix it", "Debugging {}", "{} (fixed)", "{} runbook",
    ),
}  # fmt: skip
_SEVERAL = {
    "zh": ("{name}常见报错汇总", "{name}踩坑记录", "使用{name}遇到的几个问题", "{name}问题集", "训练中的几个坑"),
    "en": ("Problems we met with {name}", "{name}: errors and what to do", "Notes on {name}", "Common {name} errors"),
}
_OPENINGS = {
    "zh": ("", "", "{n}. ", "问题{zh}：", "{zh}、", "报错{n}：", "{n}、"),
    "en": ("", "", "{n}. ", "Issue {n}: ", "Error {n}: ", "{n}) "),
}
_TOP = {
    "zh": (
        "首页 / 博客 / {name}", "首页 > 技术文章 > 正文", "原创", "作者：林小舟", "{name}技术社区", "发布于 2024-{m:02}-1{d}",
        "2025-0{d}-2{d} 1{d}:2{d}:0{d}作者：周明远Kay", "最新推荐文章于 2025-{m:02}-0{d} 10:1{d}:00 发布", "阅读 {m}{d}6",
        "阅读量1.{d}k", "收藏 {m} 点赞数 {d}", "分类专栏： {name} 文章标签： {name} 运维 报错",
        "版权声明：本文为博主原创文章，转载请附上原文链接", "标签：{name}", "浏览次数：{m}0{d}", "会员 登录 注册",
        "本文已参与「新人创作礼」活动", "专栏收录该内容", "于 2023-{m:02}-0{d} 0{d}:15:3{d} 首次发布", "关注", "编辑：小棠",
    ),
    "en": (
        "Home › Blog › {name}", "Back to articles", "Published: Apr {m}, 202{d}", "{d} min read", "· {d} min read", "JW",
        "Jonas Wikström", "By Priya Nadkarni | Updated 2025-{m:02}-0{d}", "AI", "DevOps", "Skip to content",
        "{name}", "Category: {name}", "Last updated on March {m}, 2025 by Tom", "Share", "Subscribe", "Written by Ana Reyes",
        "Tags: {name}, errors", "Difficulty: medium", "{m} views", "Sign in", "Posted in {name} · {d} comments",
    ),
}  # fmt: skip
_INTRO = {
    "zh": (
        "本文结合线上经验，给出一套可以照着做的处理办法。", "下面先看现象，再讲原因，最后给出步骤。",
        "这个问题在社区里被问过很多次，这里整理一下。", "今天记录一下排查的经过，希望能帮到后来的人。",
        "文章较长，赶时间的话可以直接看最后一节。", "阅读本文大约需要五分钟。", "以下内容在测试环境中验证过。",
        "本文适合有一定基础的读者。", "先说结论，细节在后面。",
    ),
    "en": (
        "This guide walks through what you see, why it happens and what to do about it.",
        "A complete runbook with real commands and step-by-step fixes.", "Here is everything we learned from it.",
        "Read on for the details, or jump to the end if you are in a hurry.", "This article is for people who run it daily.",
        "We have seen this on several clusters, so it deserves a page of its own.", "Covers tuning, debugging and more.",
        "In this post I collect what I wish I had known.",
    ),
}  # fmt: skip
_HEADS = {
    "zh": {
        "symptom": ("问题描述", "问题现象", "问题背景", "报错信息", "错误信息", "现象", "问题现象与背景", "问题复现", "错误日志", "故障现象"),
        "cause": ("原因分析", "根本原因", "问题原因", "核心原因分析", "为什么会出现这个问题", "问题根源", "根因分析", "报错原因",
                  "可能的原因", "技术细节分析", "原因"),
        "fix": ("解决方案", "解决办法", "解决方法", "处理步骤", "如何解决", "修复方案", "解决方案建议", "具体解决步骤", "解决思路",
                "应对方法", "解决", "即时解决方案"),
        "other": ("总结", "预防措施", "最佳实践", "写在最后", "对开发者的启示", "延伸阅读", "背景知识", "经验教训", "高级技巧", "常用命令"),
        "rejected": ("不要尝试", "这些办法没有用", "无效的做法", "试过但没用的办法", "常见误区"),
    },
    "en": {
        "symptom": ("The error", "Symptoms", "Error message", "What you see", "The problem", "Problem", "What happens",
                    "How it looks", "Error Output"),
        "cause": ("Why it happens", "Root cause", "Causes", "Common causes", "What causes this error?", "Explanation",
                  "Why this happens", "The cause", "Behind the error", "Cause"),
        "fix": ("Quick fix", "How to fix it", "Solution", "Step-by-Step Fix", "The fix", "Fixes", "What works", "Do this",
                "Resolution", "Workarounds", "Fix it", "What to do"),
        "other": ("Prevention", "Summary", "Key takeaways", "Best practices", "Background", "Conclusion", "Why this matters",
                  "Further reading", "Reality check", "How it works"),
        "rejected": ("Don't try", "What doesn't work", "Dead ends", "Do NOT try these", "Things that do not help",
                     "What doesn't", "Common mistakes"),
    },
}  # fmt: skip
_LEADS = {
    "zh": {
        "symptom": ("常见的报错如下：", "具体表现为:", "日志里可以看到:", "在日常使用{name}时，经常会遇到下面的错误:"),
        "cause": ("通常由以下因素共同导致:", "主要原因有以下几点：", "分析可知:", "典型原因包括:", "发生原因:"),
        "fix": ("可以按下面的步骤处理:", "针对此问题，建议从以下方面处理:", "按顺序尝试：", "推荐的做法是："),
    },
    "en": {
        "symptom": ("You run it and hit:", "The log shows:", "Typical output looks like this:", "You might see:"),
        "cause": ("There are several possible reasons:", "The usual suspects are:", "It comes down to a few things:"),
        "fix": ("Try the following, in this order:", "The steps below solve it in most cases:", "Do the following:"),
    },
}  # fmt: skip
_REJECTED = {
    "zh": (
        "重装系统（大多数情况下无效）", "直接删除整个目录", "关闭防火墙（掩盖了真正的问题）", "反复重启服务，问题还会回来",
        "把超时时间改得很大，只会让故障更晚暴露", "升级到测试版", "盲目增加内存", "忽略这条报错",
    ),
    "en": (
        "Reinstalling the whole package (80% fail)", "Raising the timeout to a very large value", "Ignoring the message",
        "Turning the check off: this only hides the real issue", "Restarting in a loop", "Downgrading everything (72% fail rate)",
        "Deleting the cache blindly", "Switching to another backend; it is far slower", "Adding more memory without measuring",
    ),
}  # fmt: skip
_METHODS = {
    "zh": ("方法一", "方案一", "步骤一", "第一步"),
    "en": ("Step 1", "Option 1", "Method 1", "Fix 1", "Solution 1"),
}
_BOTTOM = {
    "zh": (
        "相关推荐", "猜你喜欢", "你可能感兴趣的文章", "上一篇：{other}", "下一篇：{other}", "© 2025 {name}技术社区 版权所有", "点赞 {d} 收藏 {m}",
        "觉得有用就点个赞吧", "扫码关注公众号，回复“资料”领取", "评论 {d}", "写评论", "热门文章", "最新评论", "本文转载自网络，侵删",
        "举报", "关于作者：十年运维老兵", "展开阅读全文", "打赏",
    ),
    "en": (
        "Related articles", "You might also like", "Other errors", "Previous: {other}", "Next: {other}", "© 2025 {name} blog",
        "Share on X", "Leave a comment", "{d} comments", "About the author", "Was this helpful? Yes No", "Sources", "Newsletter",
        "Join 12,000 readers", "Back to top", "Privacy policy", "Hire me", "Error chain", "You might be coming from:",
    ),
}  # fmt: skip
_DIGITS = "一二三四五六七八九十"
_BULLET = re.compile(r"^\s*[-*•]\s+")
_NUMBER = re.compile(r"^\s*\d{1,2}[.、)）]\s+")
_ODD = re.compile(r"----|====|__ |<[a-z/]|\|[ -]|\bQ\d|\\n- +\\n|\|\|")
_FENCE = re.compile(r"^\s*(?:```|~~~)")


def draw_post(material: Material, rng: random.Random, number: int) -> Page:
    """A post in a layout drawn at random."""
    lang = rng.choice(("zh", "en"))
    return parse_tagged(f"{number:05}-post--{lang}", _Post(material, lang, rng).text())


class _Post:
    def __init__(self, material: Material, lang: str, rng: random.Random) -> None:
        self.material, self.lang, self.rng = material, lang, rng
        self.marked = rng.random() < 0.25  # headings and fences are still there
        self.gap = "\n\n" if self.marked or rng.random() < 0.3 else "\n"
        self.flat = rng.random() < 0.5  # code has lost its indentation
        self.torn = rng.choice(("- ", "- ", "-\n", "• ", "  • ", "", "✔\n"))
        self.numbering = rng.choice(("", "", "", "一、", "1. ", "1、", "01 ", "1 "))
        self.colon = rng.choice(("", "", "", "：" if lang == "zh" else ":"))
        self.name = rng.choice(material.names[lang] or ["X"])
        self.sections = 0

    def text(self) -> str:
        rng, lang = self.rng, self.lang
        several = rng.random() < 0.35
        entries = [self._entry() for _ in range(rng.randint(2, 4) if several else 1)]
        title = self._plain(rng.choice(_TITLES[lang]).format(entries[0].title.rstrip("?？。.")))
        title = rng.choice(_SEVERAL[lang]).format(name=self.name) if several else title
        out = [f"⟦lang: {lang}⟧", *self._furniture(_TOP, rng.choice((0, 0, 1, 2, 4)))]
        out.append(f"⟦{'other' if several else 'title'}⟧{'# ' if self.marked else ''}{title}")
        out += self._furniture(_TOP, rng.choice((0, 0, 1, 2)))
        if rng.random() < 0.3:
            out.append("⟦other⟧" + rng.choice(_INTRO[lang]))
        order = ["symptom", "cause", "fix"]
        if rng.random() < 0.12:
            order = ["symptom", "fix", "cause"]
        opening = rng.choice(_OPENINGS[lang])
        body = []
        for n, entry in enumerate(entries, 1):
            if several:
                self.sections = 0
                words = self._plain(entry.title).replace("\n", " ")
                body.append(f"⟦title⟧{'## ' if self.marked else ''}{opening.format(n=n, zh=_DIGITS[n - 1])}{words}")
            parts = {tag: [text for t, text in entry.parts if t == tag] for tag in order}
            body += [piece for tag in order if parts[tag] for piece in self._section(tag, parts[tag])]
        if rng.random() < 0.3:
            heads = [
                self._plain(line) for piece in body if piece.startswith("⟦label⟧") for line in (piece[7:].strip("# "),)
            ]
            out.append("⟦boilerplate⟧" + ("文章目录" if lang == "zh" else "Table of contents"))
            out += [f"⟦boilerplate⟧{head}" for head in heads]
            if rng.random() < 0.4:
                out.append(f"⟦boilerplate⟧{title}")
        out += body
        for _ in range(rng.choice((0, 0, 1, 2))):
            out += self._aside()
        bottom = self._furniture(_BOTTOM, rng.choice((0, 1, 2, 4)))
        if bottom and rng.random() < 0.6:
            others = rng.choices(self.material.issues[lang], k=rng.randint(2, 5))
            bottom[1:1] = [f"⟦boilerplate⟧- {self._plain(other.title)}" for other in others]
        return self.gap.join([*out, *bottom]) + "\n"

    def _entry(self) -> Entry:
        some = self.rng.choices(self.material.issues[self.lang], k=40)
        return next(
            (one for one in some if len(one.parts) > 1 and not _ODD.search(one.title + str(one.parts))), some[0]
        )

    def _furniture(self, pool: dict[str, tuple[str, ...]], count: int) -> list[str]:
        rng, lang = self.rng, self.lang
        lines = rng.sample(pool[lang], count)
        other = self._plain(rng.choice(self.material.issues[lang]).title)
        return [
            f"⟦boilerplate⟧{line.format(name=self.name, other=other, m=rng.randint(1, 12), d=rng.randint(1, 9))}"
            for line in lines
        ]

    def _heading(self, words: str) -> str:
        self.sections += 1
        number = {"一、": f"{_DIGITS[self.sections - 1]}、"}.get(
            self.numbering, self.numbering.replace("1", str(self.sections))
        )
        return f"{'## ' if self.marked else ''}{number}{words}{self.colon}"

    def _section(self, tag: str, texts: Sequence[str]) -> list[str]:
        rng, lang = self.rng, self.lang
        out: list[str] = []
        if tag != "symptom" or rng.random() < 0.6:
            label = rng.choice(_HEADS[lang][tag] + tuple(rng.sample(WORDS["labels"][lang][tag], 3)))
            label = label if lang == "zh" or label[:1].isupper() else label.capitalize()
            out.append(f"⟦label⟧{self._heading(label)}")
        if rng.random() < 0.3:
            out.append(f"⟦{tag}⟧{rng.choice(_LEADS[lang][tag]).format(name=self.name)}")
        chunks = [chunk for text in texts for chunk in _chunks(text)][: rng.choice((2, 4, 9))]
        methods = tag != "symptom" and len(chunks) > 1 and rng.random() < 0.4
        style = rng.choice((rng.choice(_METHODS[lang]), "number", "sub"))
        items = bool(chunks) and not methods and rng.random() < 0.5
        step = 0
        if tag == "fix" and rng.random() < 0.15:
            out += self._rejected()
        for chunk in chunks:
            code = _FENCE.match(chunk) is not None
            if methods and not code:
                step += 1
                out += self._method(tag, chunk, style, step)
            elif items and not code:
                out.append(f"⟦{tag}⟧{self.torn}{self._body(chunk)}")
            else:
                out.append(f"⟦{tag}⟧{self._body(chunk)}")
        if tag == "fix" and rng.random() < 0.15:
            out += self._rejected()
        return out

    def _method(self, tag: str, chunk: str, style: str, step: int) -> list[str]:
        """A short line that names the method, and what to do."""
        text = self._body(chunk)
        head, _, rest = re.sub(r"(?<=[。：:；;，])|(?<=[.,;] )", "\0", text, count=1).partition("\0")
        if len(head) > 60 or "\n" in head or not rest.strip():
            return [f"⟦{tag}⟧{text}"]
        number = {"number": f"{step}. ", "sub": f"{self.sections}.{step} "}.get(style)
        if number is None:
            number = style.replace("1", str(step)).replace("一", _DIGITS[(step - 1) % 10]) + (
                ":" if self.rng.random() < 0.7 else " "
            )
            number += "" if self.lang == "zh" else " "
        mark = "### " if self.marked else ""
        return [f"⟦{tag}⟧{mark}{number}{head.strip(' 。：:；;，.,')}", f"⟦{tag}⟧{rest.strip()}"]

    def _rejected(self) -> list[str]:
        rng, lang = self.rng, self.lang
        mark = rng.choice(("✘\n", "❌ ", "- ", "", "✗ "))
        lines = rng.sample(_REJECTED[lang], rng.randint(1, 4))
        out = [f"⟦label⟧{self._heading(rng.choice(_HEADS[lang]['rejected']))}"]
        return [*out, *(f"⟦symptom⟧{mark}{line}" for line in lines)]

    def _aside(self) -> list[str]:
        rng, lang = self.rng, self.lang
        asides: list[Entry] = self.material.asides[lang]
        text = [part for _, part in rng.choice(asides).parts][:2] if asides else []
        if rng.random() < 0.5:
            text = [rng.choice(_INTRO[lang])]
        return [
            f"⟦other⟧{self._heading(rng.choice(_HEADS[lang]['other']))}",
            *(f"⟦other⟧{self._body(part)}" for part in text),
        ]

    def _body(self, chunk: str) -> str:
        """The text as scraping leaves it."""
        if self.marked:
            return chunk
        lines: list[str] = []
        fenced = False
        for line in chunk.split("\n"):
            if _FENCE.match(line):
                fenced = not fenced
                continue
            if fenced:
                lines.append(line.strip() if self.flat else line)
            elif line.strip():
                line = self._plain(_BULLET.sub("", line) if not self.torn.startswith("-") else line)
                lines.append(_NUMBER.sub("", line))
        return "\n".join(line for line in lines if line.strip())

    def _plain(self, text: str) -> str:
        if self.marked:
            return " ".join(text.split()) if "\n" not in text.strip() else text
        text = re.sub(r"\[([^\]\n]+)\]\([^)\n]*\)", r"\1", text)
        return re.sub(r"\*\*|`|^\s{0,3}#{1,6}\s+", "", text).strip()
