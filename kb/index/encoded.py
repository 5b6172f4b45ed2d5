"""Which encoder made an index, and whether the one at hand sees the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from kb.encoders import Encoder, probe
from kb.errors import IndexMismatch
from kb.index.store import Store

__all__ = ["identity", "require_same"]

_PROBE_COSINE = 0.999
"""two encoders are the same when their vectors of each probe sentence are at least this near"""


def identity(encoder: Encoder) -> dict[str, Any]:
    """What the manifest says of the encoder: name, revision, dimension, and its vectors of three fixed sentences."""
    return {"name": encoder.name, "revision": encoder.revision, "dim": encoder.dim, "probe": probe(encoder).tolist()}


def require_same(store: Store, encoder: Encoder) -> None:
    """Raises IndexMismatch when `encoder` is not the one that made the index."""
    made = store.header.manifest.get("encoder", {})
    same = made.get("dim") == encoder.dim
    if same:
        now = probe(encoder)
        try:
            then = np.asarray(made.get("probe", []), np.float32)
        except (TypeError, ValueError):
            then = np.zeros(0, np.float32)
        same = then.shape == now.shape and bool(((then * now).sum(axis=1) > _PROBE_COSINE).all())
    if not same:
        raise IndexMismatch(
            f"this index was made with the encoder {made.get('name')!r} ({made.get('dim')} dimensions), "
            f"not with {encoder.name!r} ({encoder.dim}) as it is here",
            hint=f"build it again: kb build --encoder {encoder.name}",
        )
