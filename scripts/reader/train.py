"""Fits the tagger of `kb.scraped` on tagged pages and on pages drawn from a grammar of layouts.

    python scripts/reader/train.py                  # fits, prints figures, writes kb/scraped/tagger.safetensors
    python scripts/reader/train.py --practice DIR   # adds tagged pages that are not in this repository
    python scripts/reader/train.py --leave-layouts  # leaves one layout of drawn pages out at a time, writes nothing

Needs torch (the extra `transformers`). Two runs on one machine give the same file.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).parent))

from layouts import draw_page, gather  # noqa: E402
from pages import Page, read_tagged, tagged_blocks  # noqa: E402

from kb.arrays import Array, dump  # noqa: E402
from kb.records import IssueRecord  # noqa: E402
from kb.scraped import parse  # noqa: E402
from kb.scraped.features import features_of  # noqa: E402
from kb.scraped.tagger import ROWS, STATES, encoded, hashed, relations  # noqa: E402

ROOT = Path(__file__).parent.parent.parent
PAGES = Path(__file__).parent / "pages"
OUT = ROOT / "kb" / "scraped" / "tagger.safetensors"
HIDDEN, LAYERS, WIDTH = 48, 2, 5


@dataclass
class Sample:
    """A page as the tagger is fitted on it."""

    page: Page
    rows: list[Array]
    meaning: Array
    steps: Array
    states: list[int]
    weight: float


def sample_of(page: Page, weight: float = 1.0) -> Sample | None:
    _, blocks, tags, _, title = tagged_blocks(page)
    if not blocks:
        return None
    rows = [hashed(names) for names in features_of(blocks, title)]
    return Sample(page, rows, encoded(blocks), relations(blocks), states_of(tags), weight)


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


class Network(nn.Module):
    """The same as `kb.scraped.tagger.Tagger`, for fitting."""

    def __init__(self, dim: int, *, drop: float) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(ROWS, HIDDEN) * 0.02)
        self.meaning = nn.Linear(dim, HIDDEN)
        self.page = nn.Linear(HIDDEN, HIDDEN)
        self.convs = nn.ModuleList(nn.Conv1d(HIDDEN, HIDDEN, WIDTH, padding=WIDTH // 2) for _ in range(LAYERS))
        self.out = nn.Linear(HIDDEN, len(STATES))
        self.steps = nn.Parameter(torch.zeros(3, len(STATES), len(STATES)))
        self.start = nn.Parameter(torch.zeros(len(STATES)))
        self.drop = drop

    def scores(self, rows: torch.Tensor, starts: torch.Tensor, meaning: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kept = (torch.rand(len(rows)) > self.drop).float() / (1 - self.drop) if self.training else None
        sums = F.embedding_bag(rows, self.table, starts, mode="sum", per_sample_weights=kept).view(*mask.shape, -1)
        shown = mask.unsqueeze(2).float()
        hidden = F.dropout(torch.tanh(sums + self.meaning(meaning)), self.drop, self.training) * shown
        mean = hidden.sum(1, keepdim=True) / shown.sum(1, keepdim=True)
        hidden = hidden + torch.tanh(self.page(mean)) * shown
        for conv in self.convs:
            heard = torch.relu(conv(hidden.transpose(1, 2)).transpose(1, 2))
            hidden = hidden + F.dropout(heard, self.drop, self.training) * shown
        return self.out(hidden)

    def loss(self, batch: Batch) -> torch.Tensor:
        """Negative log-likelihood of the states, a block, weighted by page."""
        scores = self.scores(batch.rows, batch.starts, batch.meaning, batch.mask)
        pages = torch.arange(len(batch.states))
        total = self.start + scores[:, 0]
        gold = self.start[batch.states[:, 0]] + scores[pages, 0, batch.states[:, 0]]
        for t in range(1, batch.states.shape[1]):
            step, there = self.steps[batch.steps[:, t]], batch.mask[:, t]
            after = torch.logsumexp(total.unsqueeze(2) + step, 1) + scores[:, t]
            total = torch.where(there.unsqueeze(1), after, total)
            before, now = batch.states[:, t - 1], batch.states[:, t]
            gold = gold + torch.where(there, step[pages, before, now] + scores[pages, t, now], torch.zeros(1))
        return ((torch.logsumexp(total, 1) - gold) * batch.weight).sum() / (batch.mask.sum(1) * batch.weight).sum()

    def arrays(self) -> dict[str, Array]:
        def plain(tensor: torch.Tensor) -> Array:
            return np.ascontiguousarray(tensor.detach().numpy().astype(np.float32))

        found = {
            "table": plain(self.table).astype(np.float16),
            "meaning": plain(self.meaning.weight.T), "bias": plain(self.meaning.bias),
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
    rows: torch.Tensor
    starts: torch.Tensor
    meaning: torch.Tensor
    mask: torch.Tensor
    states: torch.Tensor
    steps: torch.Tensor
    weight: torch.Tensor


def batches(samples: Sequence[Sample], size: int = 16) -> list[Batch]:
    ordered = sorted(samples, key=lambda sample: len(sample.states))
    return [_batch(ordered[n : n + size]) for n in range(0, len(ordered), size)]


def _batch(samples: Sequence[Sample]) -> Batch:
    count, longest = len(samples), max(len(sample.states) for sample in samples)
    rows: list[Array] = []
    starts: list[int] = []
    meaning = torch.zeros(count, longest, samples[0].meaning.shape[1])
    mask = torch.zeros(count, longest, dtype=torch.bool)
    states, steps = torch.zeros(count, longest, dtype=torch.long), torch.zeros(count, longest, dtype=torch.long)
    at = 0
    for n, sample in enumerate(samples):
        length = len(sample.states)
        for t in range(longest):
            starts.append(at)
            if t < length:
                rows.append(sample.rows[t])
                at += len(sample.rows[t])
        meaning[n, :length] = torch.from_numpy(sample.meaning)
        mask[n, :length] = True
        states[n, :length] = torch.tensor(sample.states)
        steps[n, :length] = torch.from_numpy(sample.steps)
    weight = torch.tensor([sample.weight for sample in samples])
    return Batch(torch.from_numpy(np.concatenate(rows)), torch.tensor(starts), meaning, mask, states, steps, weight)


def fit(samples: Sequence[Sample], *, epochs: int, drop: float, rate: float = 3e-3, seed: int = 1) -> Network:
    torch.manual_seed(seed)
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


def shipped_records() -> list[IssueRecord]:
    root = ROOT / "articles"
    paths = sorted(path.relative_to(root).as_posix() for path in root.glob("*/*.md"))
    return [record for path in paths for record in parse((root / path).read_bytes(), path=path).records]


def tagged_pages(folder: Path) -> list[Page]:
    return [read_tagged(path) for path in sorted(folder.glob("*.tagged.md"))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--practice", type=Path, action="append", default=[])
    parser.add_argument("--drawn", type=int, default=600, help="pages from the grammar of layouts")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--drop", type=float, default=0.5)
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    pages = tagged_pages(PAGES)
    rng = random.Random(1)
    material = gather(shipped_records(), pages, rng)
    drawn = [draw_page(material, rng, number) for number in range(args.drawn)]
    pages += [page for folder in args.practice for page in tagged_pages(folder)]
    samples = [sample_of(page) for page in pages] + [sample_of(page, 0.5) for page in drawn]
    network = fit([sample for sample in samples if sample], epochs=args.epochs, drop=args.drop)
    args.out.write_bytes(dump(network.arrays()))
    print(f"{len(pages)} pages and {len(drawn)} drawn ones: {args.out} ({args.out.stat().st_size:,} bytes)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
