"""Draws an evaluation: confidence against the share of right answers, and recall by kind of question."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from kb.evaluate import Evaluation
    from kb.evaluate.figures import Calibration

__all__ = ["draw"]

# Colours that colour-blind readers can tell apart: Okabe and Ito, "Color Universal Design" (2008).
_BLUE, _ORANGE, _GREEN, _GREY = "#0072b2", "#e69f00", "#009e73", "#999999"


def draw(found: Evaluation, path: Path) -> None:
    """Writes an .svg or .png, by the suffix of `path`. The same figures give the same bytes. Raises OSError."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {"svg.fonttype": "none", "svg.hashsalt": "kb", "font.size": 9}
    style["text.parse_math"] = False  # the names of kinds are free text
    with rc_context(style), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing")  # Chinese: the viewer of the .svg has a font
        figure = Figure(figsize=(9, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        _reliability(left, found.all.calibration)
        _recall(right, found)
        figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)


def _reliability(axes: Axes, found: Calibration | None) -> None:
    axes.plot([0, 1], [0, 1], color=_GREY, linestyle="--", linewidth=1)
    for one in found.bins if found else ():
        if one.confidence is None or one.right is None:
            continue
        axes.bar((one.low + one.high) / 2, one.right, width=one.high - one.low - 0.01, color=_BLUE, alpha=0.35)
        axes.plot(one.confidence, one.right, "o", color=_BLUE)
        axes.annotate(f"{one.n}", (one.confidence, one.right), (0, 6), textcoords="offset points", ha="center")
    error = f"; calibration error {found.error:.3f}" if found else ""
    axes.set(xlim=(0, 1), ylim=(0, 1.08), xlabel="confidence of the first hit", ylabel="share right")
    axes.set_title("Confidence and truth" + error)


def _recall(axes: Axes, found: Evaluation) -> None:
    groups = [("all", found.all), *found.by_kind.items(), *found.by_lang.items()]
    known = [(name, one.known) for name, one in reversed(groups) if one.known]  # bars are drawn from the bottom up
    for at, (depth, colour) in enumerate((("1", _BLUE), ("3", _ORANGE), ("10", _GREEN))):
        values = [getattr(one, f"recall_at_{depth}") for _, one in known]
        axes.barh(
            [i + 0.27 * (1 - at) for i in range(len(known))], values, height=0.25, color=colour, label=f"@{depth}"
        )
    axes.set_yticks(range(len(known)), [f"{name} ({one.n})" for name, one in known])
    axes.set(xlim=(0, 1), xlabel="right issue among the first 1, 3, 10")
    axes.set_title("Recall by kind and language")
    if known:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncols=3, frameon=False)
