"""Fits the tagger of `kb.scraped` on tagged pages and on pages drawn from a grammar of layouts.

    python scripts/reader/train.py                  # fits and writes kb/scraped/tagger.safetensors
    python scripts/reader/train.py --practice DIR   # adds tagged pages that are not in this repository

`evaluate.py` says how well that does on pages of another kind. Needs torch (the extra `transformers`). Two runs on one
machine give the same file.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(Path(__file__).parent))

from layouts import draw_page, gather
from pages import Page, read_tagged, tagged_blocks
from posts import draw_post
from restyled import restyle

from kb.arrays import Array, dump
from kb.articles.frontmatter import read_front_matter
from kb.articles.lines import Line, classify
from kb.logs.classify import is_command
from kb.records import IssueRecord
from kb.scraped import parse
from kb.scraped.blocks import Block
from kb.scraped.code import MODEL as CODE
from kb.scraped.code import ROWS as CODE_ROWS
from kb.scraped.code import could_be_code, rows_of
from kb.scraped.features import View, look
from kb.scraped.project import BUCKETS, bucket, candidates, name_key, name_words
from kb.scraped.project import FEATURES as PROJECT_FEATURES
from kb.scraped.reader import texts_of
from kb.scraped.tagger import EARS, ROWS, STATES, encoded, hashed, heard

ROOT = Path(__file__).parent.parent.parent
PAGES = Path(__file__).parent / "pages"
OUT = ROOT / "kb" / "scraped" / "tagger.safetensors"
HIDDEN, LAYERS, WIDTH = 48, 2, 5
EPOCHS, DROP = 16, 0.5


@dataclass
class Sample:
    """A page as the tagger is fitted on it."""

    page: Page
    rows: list[list[int]]
    meaning: Array
    view: View
    states: list[int]
    messages: list[float]
    """1 for a block that is as a whole a message printed by a program, 0 for others, -1 for code, which is not asked"""
    weight: float


def sample_of(page: Page, weight: float = 1.0) -> Sample | None:
    blocks, tags, _ = tagged_blocks(page)
    if not blocks:
        return None
    view = look(blocks)
    rows = [hashed(names) for names in view.names]
    return Sample(page, rows, encoded(blocks), view, states_of(tags), messages_of(page, blocks), weight)


def messages_of(page: Page, blocks: Sequence[Block]) -> list[float]:
    printed = [squeeze(text) for _, text in page.errors]
    texts = [squeeze(block.text) for block in blocks]
    said = [any(one in text and len(one) >= 0.6 * len(text) for one in printed) for text in texts]
    return [-1.0 if block.kind == "code" else float(hit) for block, hit in zip(blocks, said, strict=True)]


def squeeze(text: str) -> str:
    return re.sub(r"[\s`*_]+", "", text)


def states_of(tags: Sequence[str]) -> list[int]:
    """A label is told apart by the tag that follows it."""
    states: list[str] = []
    ahead = "other"
    for tag in reversed(tags):
        if tag == "label":
            states.append(f"label:{ahead}")
            continue
        states.append(tag)
        if tag in ("symptom", "cause", "fix"):
            ahead = tag
        elif tag == "answer":
            ahead = "fix"
        elif tag == "other":
            ahead = "other"
    return [STATES.index(state) for state in reversed(states)]


class _Total(torch.autograd.Function):
    """For each page the log of the sum over all sequences of states. Its gradient is how probable each state and each
    step is, which the forward-backward algorithm gives without a graph of every block."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, start: torch.Tensor, steps: torch.Tensor, batch: Batch) -> torch.Tensor:
        kinds, there = batch.steps.numpy(), batch.mask.numpy()
        top = scores.numpy().max(2, keepdims=True)
        fits, ways = np.exp(scores.numpy() - top), np.exp(steps.numpy())[kinds]
        fits[:, 0] *= np.exp(start.numpy())
        ahead, behind = fits.copy(), np.ones_like(fits)
        size = np.where(there, fits.sum(2), 1)  # what `ahead` is divided by at each block, so that it stays near 1
        ahead[:, 0] /= size[:, :1]
        for t in range(1, fits.shape[1]):
            now = np.matmul(ahead[:, t - 1, None], ways[:, t])[:, 0] * fits[:, t]
            size[:, t] = np.where(there[:, t], now.sum(1), 1)
            ahead[:, t] = np.where(there[:, t, None], now / size[:, t, None], ahead[:, t - 1])
        fits /= size[..., None]
        for t in range(fits.shape[1] - 1, 0, -1):
            after = np.matmul(ways[:, t], (fits[:, t] * behind[:, t])[..., None])[..., 0]
            behind[:, t - 1] = np.where(there[:, t, None], after, behind[:, t])
        moves = ahead[:, :-1, :, None] * ways[:, 1:] * (fits * behind)[:, 1:, None] * there[:, 1:, None, None]
        ctx.chances = ahead * behind * there[..., None], moves, kinds[:, 1:]
        return torch.from_numpy(np.log(size).sum(1) + (top[..., 0] * there).sum(1))

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        states, moves, kinds = ctx.chances
        weight = grad.numpy()[:, None, None]
        states, moves = states * weight, moves * weight[..., None]
        steps = np.stack([moves[kinds == kind].sum(0) for kind in range(3)])
        return torch.from_numpy(states), torch.from_numpy(states[:, 0].sum(0)), torch.from_numpy(steps), None


class Network(nn.Module):
    """The same as `kb.scraped.tagger.Tagger`, for fitting."""

    def __init__(self, dim: int, *, drop: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(ROWS, HIDDEN) * 0.02)
        self.meaning = nn.Linear(dim, HIDDEN)
        self.ears = nn.ModuleDict({name: nn.Linear(HIDDEN, HIDDEN, bias=False) for name in EARS})
        self.page = nn.Linear(HIDDEN, HIDDEN)
        self.convs = nn.ModuleList(nn.Conv1d(HIDDEN, HIDDEN, WIDTH, padding=WIDTH // 2) for _ in range(LAYERS))
        self.out = nn.Linear(HIDDEN, len(STATES) + 1)
        self.steps = nn.Parameter(torch.zeros(3, len(STATES), len(STATES)))
        self.start = nn.Parameter(torch.zeros(len(STATES)))
        self.drop = drop

    def scores(self, batch: Batch) -> torch.Tensor:
        kept = (torch.rand(len(batch.rows)) > self.drop).float() / (1 - self.drop) if self.training else None
        own = functional.embedding_bag(batch.rows, self.table, batch.starts, mode="sum", per_sample_weights=kept)
        own = own + functional.linear(batch.meaning, self.meaning.weight)
        heard = self.meaning.bias
        for name, ear in self.ears.items():
            heard = heard + ear(functional.dropout(batch.heard[name] @ own, self.drop / 2, self.training))
        shown = batch.mask.unsqueeze(2).float()
        hidden = torch.zeros(*batch.mask.shape, HIDDEN)
        hidden[batch.mask] = functional.dropout(torch.tanh(own + heard), self.drop, self.training)
        mean = hidden.sum(1, keepdim=True) / shown.sum(1, keepdim=True)
        hidden = hidden + torch.tanh(self.page(mean)) * shown
        for conv in self.convs:
            near = torch.relu(conv(hidden.transpose(1, 2)).transpose(1, 2))
            hidden = hidden + functional.dropout(near, self.drop, self.training) * shown
        return self.out(hidden)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Negative log-likelihood of the states, and of what is a message, a block, weighted by page."""
        told = self.scores(batch)
        scores, printed = told[..., :-1], told[..., -1]
        shown, states = batch.mask.float(), batch.states
        own = scores.gather(2, states[..., None])[..., 0] * shown
        moves = self.steps[batch.steps[:, 1:], states[:, :-1], states[:, 1:]] * shown[:, 1:]
        gold = self.start[states[:, 0]] + own.sum(1) + moves.sum(1)
        total: torch.Tensor = _Total.apply(scores, self.start, self.steps, batch)  # type: ignore[no-untyped-call]
        count = (batch.mask.sum(1) * batch.weight).sum()
        asked = (batch.messages >= 0).float() * batch.weight[:, None]
        missed = functional.binary_cross_entropy_with_logits(printed, batch.messages.clamp(min=0), reduction="none")
        return (((total - gold) * batch.weight).sum() + (missed * asked).sum()) / count

    def arrays(self) -> dict[str, Array]:
        def plain(tensor: torch.Tensor) -> Array:
            return np.ascontiguousarray(tensor.detach().numpy().astype(np.float32))

        found = {
            "table": plain(self.table).astype(np.float16),
            "meaning": plain(self.meaning.weight.T), "bias": plain(self.meaning.bias),
            **{name: plain(ear.weight.T) for name, ear in self.ears.items()},  # type: ignore[operator]
            "page": plain(self.page.weight.T), "page_bias": plain(self.page.bias),
            "out": plain(self.out.weight.T), "out_bias": plain(self.out.bias),
            "steps": plain(self.steps), "start": plain(self.start),
        }  # fmt: skip
        for n, conv in enumerate(self.convs):
            found[f"conv{n}"] = plain(conv.weight.permute(2, 1, 0))
            found[f"conv{n}_bias"] = plain(conv.bias)
        return found


@dataclass
class Batch:
    """Some pages. Rows, meaning and `heard` are of the blocks of all pages in one; the rest has a row for each page."""

    rows: torch.Tensor
    starts: torch.Tensor
    meaning: torch.Tensor
    heard: dict[str, torch.Tensor]
    """sparse (blocks, blocks)"""
    mask: torch.Tensor
    states: torch.Tensor
    steps: torch.Tensor
    messages: torch.Tensor
    weight: torch.Tensor


def batches(samples: Sequence[Sample], size: int = 16) -> list[Batch]:
    ordered = sorted(samples, key=lambda sample: len(sample.states))
    return [_batch(ordered[n : n + size]) for n in range(0, len(ordered), size)]


def _batch(samples: Sequence[Sample]) -> Batch:
    count, longest = len(samples), max(len(sample.states) for sample in samples)
    mask = torch.zeros(count, longest, dtype=torch.bool)
    states, steps = torch.zeros(count, longest, dtype=torch.long), torch.zeros(count, longest, dtype=torch.long)
    messages = torch.full((count, longest), -1.0)
    for n, sample in enumerate(samples):
        length = len(sample.states)
        messages[n, :length] = torch.tensor(sample.messages)
        mask[n, :length] = True
        states[n, :length] = torch.tensor(sample.states)
        steps[n, :length] = torch.from_numpy(sample.view.step)
    rows = [row for sample in samples for row in sample.rows]
    ears = [dict(heard_from(sample.view)) for sample in samples]
    return Batch(
        torch.tensor([number for row in rows for number in row]),
        torch.from_numpy(np.cumsum([0, *map(len, rows)])[:-1]),
        torch.from_numpy(np.concatenate([sample.meaning for sample in samples])),
        {name: _sparse([ear[name] for ear in ears]) for name in EARS},
        mask, states, steps, messages, torch.tensor([sample.weight for sample in samples]),
    )  # fmt: skip


def _sparse(parts: Sequence[Array]) -> torch.Tensor:
    """The matrices of pages as one, block by block on its diagonal."""
    places, values, at = [], [], 0
    for part in parts:
        here = np.argwhere(part)
        values.append(part[here[:, 0], here[:, 1]])
        places.append(here + at)
        at += len(part)
    index, value = torch.from_numpy(np.concatenate(places).T.copy()), torch.from_numpy(np.concatenate(values))
    return torch.sparse_coo_tensor(index, value, (at, at), check_invariants=False)


def heard_from(view: View) -> Iterator[tuple[str, Array]]:
    """(n, n) each: by what weights a block hears the others. The tagger's own function, asked with unit vectors."""
    return heard(np.eye(len(view.head), dtype=np.float32), view)


def fit(samples: Sequence[Sample], *, epochs: int, drop: float, rate: float = 3e-3, seed: int = 1) -> Network:
    torch.manual_seed(seed)
    torch.set_num_threads(1)  # the products are small, and one thread gives the same weights everywhere
    shuffle = random.Random(seed)
    network = Network(samples[0].meaning.shape[1], drop=drop)
    optimiser = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=1e-4)
    parts = batches(samples)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=epochs * len(parts))
    for _ in range(epochs):
        shuffle.shuffle(parts)
        for part in parts:
            optimiser.zero_grad()
            network.loss(part).backward()
            optimiser.step()
            schedule.step()
    return network.eval()


_OUTPUT = {"", "text", "txt", "log", "console", "output", "plaintext", "none", "traceback", "pytb"}
_MARKS = re.compile(r"^\s{0,3}#{1,6}\s+|\*\*|`|^>\s?")


def code_lines(text: str, rng: random.Random) -> Iterator[tuple[Line, bool]]:
    """The lines of a page as scraping leaves them, and whether each stood in a fence. What programs print is left out,
    as far as the fence tells: a line of it may look like a sentence."""
    raw = text.splitlines()
    flat, language = rng.random() < 0.5, ""
    lines = classify(raw, read_front_matter(raw).body)[0]
    for line in lines if any(line.kind == "fence" for line in lines) else []:
        if line.kind == "fence":
            language = line.text.strip(" >`~-*").partition(" ")[0].lower()
        elif line.kind in ("code", "text", "heading"):
            code = line.kind == "code"
            shown = line.text if code else _MARKS.sub("", line.text)
            shown = shown.strip() if flat else shown
            if shown.strip() and not (code and language in _OUTPUT and not is_command(shown)):
                yield Line(line.no, shown, "text"), code


def fit_code(texts: Sequence[str], *, seed: int = 1, steps: int = 40) -> dict[str, Array]:
    """`line`: the weights by which a line counts as code; `switch`: the cost of a change between text and code, set by
    hand on pages left out."""
    torch.set_num_threads(1)  # as in `fit`
    rng = random.Random(seed)
    lines = [one for text in texts for one in code_lines(text, rng)]
    asked = [(rows_of(line.text), code) for line, code in lines if could_be_code(line)]
    rows = torch.tensor([row for own, _ in asked for row in own])
    starts = torch.from_numpy(np.cumsum([0, *(len(own) for own, _ in asked)])[:-1])
    right = torch.tensor([float(code) for _, code in asked])
    weights = torch.zeros(CODE_ROWS, 1, requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        scores = functional.embedding_bag(rows, weights, starts, mode="sum")[:, 0]
        total = functional.binary_cross_entropy_with_logits(scores, right) + 2e-5 * (weights**2).sum()
        total.backward()
        return total

    optimiser.step(loss)
    return {"line": weights.detach().numpy()[:, 0].astype(np.float16), "switch": np.array([1.0], np.float32)}


def fit_project(pages: Sequence[Page], *, seed: int = 1, steps: int = 300) -> dict[str, Array]:
    """`project`: the weights by which the names of a page are ranked; `ordinary`: on how many pages a name stands that
    are about something else. A page that states no name has none that ranks above 0.

    Some pages get a path or a tag that names their project, as files on a disk often do.
    """
    rng = random.Random(seed)
    ordinary = np.zeros(BUCKETS, np.float32)
    for page in pages:
        about = {bucket(name) for name in page.projects}
        ordinary[list({bucket(word) for word in name_words(page.text)} - about)] += 1
    found: list[tuple[Array, Array, Array]] = []
    for page in pages:
        blocks, tags, _ = tagged_blocks(page)
        title = next((block.text for block in blocks if block.kind == "heading"), blocks[0].text if blocks else "")
        slug = re.sub(r"[^a-z0-9]+", "-", (page.projects or [""])[0].casefold()).strip("-")
        named = f"{slug}-{rng.choice(('faq', 'notes', 'errors', 'guide'))}.md"
        path = rng.choice((named, f"{slug}/faq.md", "page.md", "page.md", "page.md"))
        filed = [name for name in page.projects[:1] if rng.random() < 0.3]
        tagged = [*read_front_matter(page.text.splitlines()).all("tags", "categories"), *filed]
        names, rows = candidates(title, texts_of(blocks, tags), tagged, path, ordinary)
        right = np.array([name_key(name) in map(name_key, page.projects) for name in names], bool)
        buckets = np.array([bucket(name) for name in names], int)
        if names and right.any() == bool(page.projects):
            found.append((rows, right, buckets))
    inputs = []
    for rows, right, buckets in found:
        rows[:, -1] = np.log1p(
            np.maximum(ordinary[buckets] - ~np.isin(buckets, buckets[right]), 0)
        )  # a page does not count for itself
        inputs.append((torch.from_numpy(rows), torch.tensor([*right, not right.any()])))
    weights = torch.zeros(len(PROJECT_FEATURES), requires_grad=True)
    optimiser = torch.optim.LBFGS([weights], max_iter=steps)

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        total = 0.002 * len(found) * (weights**2).sum()
        for rows, right in inputs:
            scores = torch.cat([rows @ weights, torch.zeros(1)])
            total = total + torch.logsumexp(scores, 0) - torch.logsumexp(scores[right], 0)
        total.backward()
        return total

    optimiser.step(loss)
    return {"project": weights.detach().numpy(), "ordinary": ordinary.astype(np.float16)}


def shipped_records() -> list[IssueRecord]:
    root = ROOT / "articles"
    paths = sorted(path.relative_to(root).as_posix() for path in root.glob("*/*.md"))
    return [record for path in paths for record in parse((root / path).read_bytes(), path=path).records]


def tagged_pages(folder: Path) -> list[Page]:
    return [read_tagged(path) for path in sorted(folder.glob("*.tagged.md"))]


def draw(pages: Sequence[Page], count: int) -> list[Page]:
    """Pages made of these: drawn ones, posts, and each of them in other clothes."""
    rng = random.Random(1)
    material = gather(shipped_records(), pages, rng)
    drawn = [draw_page(material, rng, number) for number in range(count)]
    drawn += [draw_post(material, rng, number) for number in range(count // 2)]
    return drawn + [restyle(page, rng) for page in pages]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--practice", type=Path, action="append", default=[])
    parser.add_argument("--drawn", type=int, default=300, help="pages from the grammar of layouts")
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    pages = tagged_pages(PAGES)
    articles = [path.read_text("utf-8") for path in sorted((ROOT / "articles").glob("*/*.md"))]
    CODE.write_bytes(dump(fit_code([*(page.text for page in pages), *articles])))  # first: it decides what a block is
    drawn = draw(pages, args.drawn)
    pages += [page for folder in args.practice for page in tagged_pages(folder)]
    samples = [sample_of(page) for page in pages] + [sample_of(page, 0.5) for page in drawn]
    network = fit([sample for sample in samples if sample], epochs=EPOCHS, drop=DROP)
    args.out.write_bytes(dump({**network.arrays(), **fit_project(pages)}))
    print(f"{len(pages)} pages and {len(drawn)} drawn ones: {args.out} ({args.out.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
