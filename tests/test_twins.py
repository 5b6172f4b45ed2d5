"""kb.index.twins: which issues of an English and a Chinese article are one, and what they are called."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from conftest import EMPTY_RECORD, FakeEncoder, Write
from test_build import files

from kb.base import KnowledgeBase
from kb.index.build import build
from kb.index.twins import Unlike, counterparts, join_twins, numbered_by_place
from kb.records import IssueRecord

# Written as two people write who do not translate word by word.
TOLD = {
    "pending": (
        ("Pod stays Pending", "kubectl get pod shows Pending and no node is assigned.",
         "Give the pod smaller requests, or add a node: kubectl describe pod shows Insufficient cpu."),
        ("Pod 一直是 Pending", "kubectl get pod 显示 Pending，没有分配节点。",
         "用 kubectl describe pod 看到 Insufficient cpu 时，减小 requests 或者加节点。"),
    ),
    "image": (
        ("ImagePullBackOff when a pod starts", "The events say Failed to pull image, unauthorized.",
         "Create a docker-registry secret and name it under imagePullSecrets."),
        ("Pod 启动时报 ImagePullBackOff", "事件里有 Failed to pull image，unauthorized。",
         "创建 docker-registry 类型的 secret，写进 imagePullSecrets。"),
    ),
    "dns": (
        ("Names are not resolved inside a pod", "nslookup kubernetes.default times out.",
         "See whether the coredns pods run, and whether a network policy blocks port 53."),
        ("Pod 里解析不了域名", "nslookup kubernetes.default 超时。",
         "检查 coredns 的 Pod 是否正常，网络策略是否拦住了 53 端口。"),
    ),
    "oom": (
        ("Container killed with exit code 137", "The last state is OOMKilled.",
         "Raise resources.limits.memory, or find what the process keeps in memory."),
        ("容器被杀，退出码 137", "上一次状态是 OOMKilled。",
         "调大 resources.limits.memory，或者找出进程占用内存的原因。"),
    ),
    "volume": (
        ("A volume cannot be mounted", "MountVolume.SetUp failed for volume, wrong fs type.",
         "Install nfs-common on the node."),
        ("存储卷挂载失败", "报错 MountVolume.SetUp failed for volume，wrong fs type。", "在节点上安装 nfs-common。"),
    ),
}  # fmt: skip


def records(lang: str, names: Sequence[str], slug: str = "pod") -> list[IssueRecord]:
    from dataclasses import replace

    told = [TOLD[name][lang == "zh"] for name in names]
    found = [
        replace(EMPTY_RECORD, id=f"{slug}#{n}/{lang}", issue=f"{slug}#{n}", lang=lang, title=a, symptom=b, fix=c)
        for n, (a, b, c) in enumerate(told, 1)
    ]
    return list(numbered_by_place(found))


# English order, Chinese order, the numbers of the Chinese issues
CASES = {
    "the same": ("pending image dns", "pending image dns", "1 2 3"),
    "one": ("pending", "pending", "1"),
    "swapped": ("pending image dns oom", "pending dns image oom", "1 3 2 4"),
    "one less": ("pending image dns", "pending dns", "1 3"),
    "one more": ("pending dns", "pending image dns", "1 3 2"),
    "others": ("pending image", "oom dns", "3 4"),
    "some, in another order": ("pending image dns", "volume dns pending", "4 3 1"),
    "none in English": ("", "dns oom", "1 2"),
    "none in Chinese": ("dns oom", "", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_joined_has_one_number_and_no_other_has_it(name: str) -> None:
    en, zh, numbers = (part.split() for part in CASES[name])
    articles = {"en/pod.md": records("en", en), "zh/pod.md": records("zh", zh)}
    joined, unlike = join_twins(articles)
    assert joined["en/pod.md"] == articles["en/pod.md"]
    assert [record.issue for record in joined["zh/pod.md"]] == [f"pod#{n}" for n in numbers]
    assert [record.id for record in joined["zh/pod.md"]] == [f"pod#{n}/zh" for n in numbers]
    both = len(set(en) & set(zh))
    told = [Unlike("en/pod.md", "zh/pod.md", both, len(en) - both, len(zh) - both, 0)]
    assert [(one.joined, one.only_en, one.only_zh) for one in unlike] == (
        [] if en == zh or not (en and zh) else [(one.joined, one.only_en, one.only_zh) for one in told]
    )
    back = [numbered_by_place(joined[path]) for path in articles]
    assert back == list(articles.values()), "an index forgets nothing that a later build needs"


def test_any_two_orders() -> None:
    chance = random.Random(3)
    for _ in range(40):
        en, zh = (chance.sample(list(TOLD), chance.randint(1, len(TOLD))) for _ in range(2))
        expected = [en.index(name) if name in en else None for name in zh]
        assert counterparts(records("en", en), records("zh", zh)) == expected, (en, zh)


def test_articles_of_other_names_and_languages_are_left_alone() -> None:
    articles = {
        "a.md": records("en", ["dns", "oom"], "a"),
        "b.md": records("zh", ["oom", "dns"], "b"),
        "c.md": [],
        "zh/c.md": records("zh", ["oom"], "c"),
    }
    assert join_twins(articles) == (articles, [])


def page(lang: str, names: str) -> str:
    label = ("Symptom", "Fix") if lang == "en" else ("现象", "解决方案")
    told = [TOLD[name][lang == "zh"] for name in names.split()]
    issues = [f"## {title}\n\n### {label[0]}\n\n{symptom}\n\n### {label[1]}\n\n{fix}\n" for title, symptom, fix in told]
    return "---\nproject: Kubernetes\n---\n\n# Pods\n\n" + "\n".join(issues)


@pytest.mark.thorough
def test_a_build_decides_anew_whatever_was_built_before(tmp_path: Path, write: Write) -> None:
    """The Chinese article and then its twin are edited, taken away and put back: the ids and bytes are always those of
    a build from nothing."""
    folder, index, encoder = tmp_path / "articles", tmp_path / "index", FakeEncoder()
    states = [
        {"en/pod.md": "pending image dns", "zh/pod.md": "pending image dns"},
        {"en/pod.md": "pending image dns", "zh/pod.md": "dns volume"},
        {"en/pod.md": "dns pending", "zh/pod.md": "dns volume"},
        {"zh/pod.md": "dns volume"},
        {"en/pod.md": "volume dns", "zh/pod.md": "dns volume"},
    ]
    numbers = ["1 2 3", "3 4", "1 3", "1 2", "2 1"]
    for number, (state, expected) in enumerate(zip(states, numbers, strict=True)):
        write({path: page(path[:2], names) for path, names in state.items()})
        for path in {"en/pod.md", "zh/pod.md"} - state.keys():
            (folder / path).unlink(missing_ok=True)
        report = build(folder, index, encoder=encoder)
        build(folder, tmp_path / f"nothing{number}", encoder=encoder)
        assert files(index) == files(tmp_path / f"nothing{number}")
        with KnowledgeBase.open(index, encoder=encoder) as base:
            ids = [record.issue for record in base.records() if record.lang == "zh"]
            assert ids == [f"pod#{n}" for n in expected.split()]
            assert {len({r.lang for r in base.show(issue)}) for issue in ids} <= {1, 2}
        assert bool(report.unlike) == (number in (1, 2, 4))


def test_an_article_that_lost_its_first_number_still_clashes(tmp_path: Path, write: Write) -> None:
    """By the numbers of its place, not by those that its twin gave it."""
    folder = write({"en/pod.md": page("en", "pending image dns"), "zh/pod.md": page("zh", "dns")})
    build(folder, tmp_path / "index", encoder=FakeEncoder())
    write({"zh/pod.markdown": page("zh", "volume")})
    report = build(folder, tmp_path / "index", encoder=FakeEncoder(), keep_going=True)
    assert [error.path for error in report.bad] == ["zh/pod.md"]
