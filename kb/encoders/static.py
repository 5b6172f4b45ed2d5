"""The shipped encoder: the mean of the vectors of a text's tokens. The table of vectors is memory-mapped, so that a
query reads only a few pages of it.

The folder is laid out as sentence-transformers lays out a `StaticEmbedding`, so `SentenceTransformer(folder)` loads
it too; a test holds the vectors of both equal to 1e-5.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.arrays import Array, open_arrays
from kb.encoders.unigram import FILE_NAME, UnigramTokenizer
from kb.errors import EncoderUnavailable, IndexCorrupt

if TYPE_CHECKING:
    from tokenizers import Tokenizer

    from kb.encoders import Kind

__all__ = ["StaticEncoder"]


class StaticEncoder:
    """A table of token vectors in `folder`: model.safetensors with `embedding.weight` (V, dim), tokenizer.json."""

    def __init__(self, folder: Path, *, name: str) -> None:
        self.name = name
        self._folder = folder
        try:
            self._table = open_arrays(folder / "model.safetensors")["embedding.weight"]
        except (OSError, KeyError, IndexCorrupt) as error:
            raise EncoderUnavailable(
                f"no static model here ({error})", path=folder, hint="it needs model.safetensors with embedding.weight"
            ) from None
        if self._table.ndim != 2:
            raise EncoderUnavailable("embedding.weight is no matrix", path=folder)

    @property
    def dim(self) -> int:
        return int(self._table.shape[1])

    @cached_property
    def revision(self) -> str:
        digest = hashlib.sha256()
        for file in ("model.safetensors", "tokenizer.json"):
            digest.update((self._folder / file).read_bytes())
        return digest.hexdigest()[:16]

    @cached_property
    def _packed(self) -> UnigramTokenizer | None:
        return UnigramTokenizer(self._folder) if (self._folder / FILE_NAME).exists() else None

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        from tokenizers import Tokenizer

        try:
            tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        except Exception as error:  # tokenizers raises bare Exception
            raise EncoderUnavailable(f"tokenizer.json cannot be read ({error})", path=self._folder) from None
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Array:
        """(len(texts), dim) float32, rows of norm 1 (0: no known token). Each row depends on its own text alone."""
        vectors = np.zeros((len(texts), self.dim), np.float32)
        for row, ids in enumerate(self.tokens(texts)):
            if ids:
                np.add.reduce(self._table.take(ids, axis=0), axis=0, dtype=np.float32, out=vectors[row])
        return _normalised(vectors)[0]

    def vectors(self, tokens: Array, starts: Array) -> tuple[Array, Array]:
        """The same for many short texts that are split already, quickly: `tokens` of all, one text after the other;
        text i has those from `starts[i]` to `starts[i + 1]`. (len(starts) - 1, dim) float32, rows of norm 1 or 0, and
        the norm of each before that: it says how much a text says, because common tokens have short vectors."""
        vectors = np.zeros((len(starts) - 1, self.dim), np.float32)
        sizes = np.diff(starts)
        for place in range(int(sizes.max(initial=0))):  # the first token of every text, then the second, ...
            there = np.flatnonzero(sizes > place)
            vectors[there] += self._table[tokens[starts[there] + place]]
        return _normalised(vectors)

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """By the packed vocabulary, which is quicker even for thousands of texts since words repeat; texts that it
        declines, or all when there is none, by `tokenizers`."""
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # no lone surrogates
        found = [None if self._packed is None else self._packed.encode(text) for text in texts]
        declined = [i for i, ids in enumerate(found) if ids is None]
        if declined:
            encoded = self._tokenizer.encode_batch([texts[i] for i in declined], add_special_tokens=False)
            for i, one in zip(declined, encoded, strict=True):
                found[i] = one.ids
        return [ids for ids in found if ids is not None]


def _normalised(vectors: Array) -> tuple[Array, Array]:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    np.divide(vectors, norms, out=vectors, where=norms > 0)
    return vectors, norms[:, 0]
