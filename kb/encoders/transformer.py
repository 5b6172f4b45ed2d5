"""Any sentence-transformers model as an encoder (extra `transformers`, which brings torch).

Queries and passages are encoded with the prompts that the model itself brings (`encode_query`, `encode_document`).
Models of the E5 family were trained with prompts but do not name them in their files: theirs are here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kb.arrays import Array
from kb.errors import EncoderUnavailable

if TYPE_CHECKING:
    from kb.encoders import Kind

__all__ = ["TransformerEncoder"]

OLDEST_SAFE = 6
"""the first major release of sentence-transformers that runs nothing from a model's folder"""

_E5 = re.compile(r"(?:^|[/\\_-])e5-", re.IGNORECASE)
_E5_PROMPTS = {"query": "query: ", "document": "passage: "}


class TransformerEncoder:
    """The model `name`: a folder, or a name that sentence-transformers finds in its local cache or, unless
    `offline`, on its hub."""

    def __init__(self, name: str, *, offline: bool = False) -> None:
        _require_safe_version(name)
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError:
            raise _needs_extra(name) from None
        try:
            self._model = SentenceTransformer(name, local_files_only=offline)
        except Exception as error:  # the hub, torch and the tokenizer each raise their own
            raise EncoderUnavailable(
                f"the encoder {name!r} cannot be loaded: {error}",
                hint="give a folder, or a model that is in the local cache; HF_HUB_OFFLINE=1 forbids the network",
            ) from error
        if _E5.search(name) and not any(self._model.prompts.values()):
            self._model.prompts.update(_E5_PROMPTS)
        old, new = "get_sentence_embedding_dimension", "get_embedding_dimension"  # calling the old one warns
        dim = getattr(self._model, new if hasattr(self._model, new) else old)()
        if dim is None:
            raise EncoderUnavailable(f"the encoder {name!r} does not tell its dimension")
        self.name: str = str(Path(name).resolve()) if Path(name).is_dir() else name
        self.dim: int = int(dim)
        self.revision: str = _revision(name)

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Array:
        """(len(texts), dim) float32, rows of norm 1 (0: no known token)."""
        if not texts:
            return np.zeros((0, self.dim), np.float32)
        texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]  # no lone surrogates
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        vectors = np.asarray(encode(texts, convert_to_numpy=True, show_progress_bar=False), np.float32)
        vectors = np.nan_to_num(vectors, nan=0.0, posinf=0.0, neginf=0.0)
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        np.divide(vectors, norms, out=vectors, where=norms > 0)
        return vectors


def _require_safe_version(name: str) -> None:
    """Older releases import whatever class a model's modules.json names, and run a file that lies beside it."""
    try:
        found = version("sentence-transformers")
    except PackageNotFoundError:
        raise _needs_extra(name) from None
    if int(found.partition(".")[0]) < OLDEST_SAFE:
        raise EncoderUnavailable(
            f"the encoder {name!r} needs sentence-transformers {OLDEST_SAFE} or later, here is {found}: older ones run "
            "programs that lie in a model's folder",
            hint="pip install -U 'kb-issues[transformers]'",
        )


def _needs_extra(name: str) -> EncoderUnavailable:
    return EncoderUnavailable(
        f"the encoder {name!r} needs sentence-transformers", hint="pip install 'kb-issues[transformers]'"
    )


def _revision(name: str) -> str:
    """A folder: its files' names and sizes; a hub model: the commit in the cache is sentence-transformers' affair, and
    the probe vectors of the manifest tell a changed model."""
    folder = Path(name)
    if not folder.is_dir():
        return name
    listing = sorted((p.relative_to(folder).as_posix(), p.stat().st_size) for p in folder.rglob("*") if p.is_file())
    return hashlib.sha256(repr(listing).encode()).hexdigest()[:16]
