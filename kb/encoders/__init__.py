"""Turns text into vectors, so that texts with the same meaning are near each other, in Chinese and English.

Two encoders implement one protocol: the shipped static model (a table of token vectors, no torch), and any
sentence-transformers model by name or folder. A folder that holds only a static table is read without torch, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from kb.arrays import Array
from kb.errors import EncoderUnavailable

if TYPE_CHECKING:
    from kb.encoders.static import StaticEncoder
    from kb.encoders.unigram import UnigramTokenizer

__all__ = ["DEFAULT", "Encoder", "Kind", "open_encoder", "probe", "rarity", "refuse_folder", "surprisal", "term_table"]

DEFAULT = "kb-static"
"""the encoder that travels inside the package"""

Kind = Literal["query", "passage"]

_MODEL = Path(__file__).parent.parent / "model"
_PROBES = ("RuntimeError: CUDA out of memory", "训练时 loss 变成 NaN", "num_generations=8 hangs on rank 3")


@runtime_checkable
class Encoder(Protocol):
    @property
    def name(self) -> str:
        """What `kb build --encoder` was given."""

    @property
    def revision(self) -> str:
        """Which state of the model: changes when its files do."""

    @property
    def dim(self) -> int: ...

    def encode(self, texts: Sequence[str], *, kind: Kind) -> Array:
        """(len(texts), dim) float32, rows of norm 1; a row of zeros where no token is known."""


def open_encoder(name: str | None = None, *, offline: bool = False) -> Encoder:
    """Opens an encoder. `name`: None or "kb-static" for the shipped model, else a folder or the name of a
    sentence-transformers model. `offline`: use only files on this machine; an index names its encoder, and may come
    from anybody.

    Raises EncoderUnavailable when it is not there or its extra is not installed.
    """
    from kb.encoders.static import StaticEncoder

    if name is None or name == DEFAULT:
        return term_table()
    folder = Path(name)
    if _is_static(folder):
        return StaticEncoder(folder, name=name)
    from kb.encoders.transformer import TransformerEncoder

    return TransformerEncoder(name, offline=offline)


def refuse_folder(name: object, index: Path) -> None:
    """Raises EncoderUnavailable when an index that nobody named outright wants its encoder from a folder: a model's
    folder may hold programs, and an index that was merely found may come from anybody."""
    import shlex

    if name != DEFAULT and isinstance(name, str) and (Path(name).is_absolute() or _exists(Path(name))):
        raise EncoderUnavailable(
            f"this index wants its encoder from the folder {name!r}, which is opened only for an index that is named",
            path=index,
            hint=f"if you trust that folder: kb search --index {shlex.quote(str(index))}",
        )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return True  # what cannot be looked at is not taken for a name


def probe(encoder: Encoder) -> Array:
    """(3, dim): the encoder's vectors of three fixed sentences. An index stores them: they differ when the model was
    changed, even under the same name."""
    vectors = encoder.encode(_PROBES, kind="passage").astype("float64").round(4)
    return vectors + 0.0  # no negative zero: it would be written otherwise than it is read


def surprisal(words: Iterable[str]) -> list[float]:
    """How rare each word is in technical text: -ln p in nats, about 3 (`the`) to 18. By the shipped model's vocabulary,
    whatever encoder is in use: a small base cannot tell by itself that `object` is more common than `deque`."""
    vocabulary = _vocabulary()
    return [vocabulary.surprisal(word) for word in words]


@cache
def _vocabulary() -> UnigramTokenizer:
    from kb.encoders.unigram import UnigramTokenizer

    return UnigramTokenizer(_MODEL)


@cache
def term_table() -> StaticEncoder:
    """The shipped table of token vectors, by which single terms are compared, whatever encoder is in use."""
    from kb.encoders.static import StaticEncoder

    return StaticEncoder(_MODEL, name=DEFAULT)


COMMON, RARE = 5.0, 11.0
"""nats of surprisal: `error` and `type` are at 6, `list` 7, `cuda` and `checkpoint` 9, `deque` 11, `sigfpe` 14"""


def rarity(surprisal: Array) -> Array:
    """Surprisal (n,) as a share between a word that is common in any technical text (0) and one that is rare (1)."""
    return ((surprisal - COMMON) / (RARE - COMMON)).clip(0, 1)


def _is_static(folder: Path) -> bool:
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        return len(modules) == 1 and str(modules[0]["type"]).endswith(".StaticEmbedding")
    except (OSError, ValueError, KeyError, TypeError):
        return False
