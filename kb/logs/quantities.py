"""The named numbers that messages of known forms print: how much memory is free, which collective timed out.

Often such a number tells two failures apart that print the same words. An article states its condition on them
(`kb.logs.conditions`). A text may hold a message several times, once for each process: a quantity has several values.

    gpu, requested, total, free, allocated, reserved, unallocated, missing
        of PyTorch's out-of-memory message: the number of the card; GiB; unallocated = reserved - allocated;
        missing = requested - free - unallocated: below 0 all of it is there, but in pieces
    seqnum, numel, timeout
        of NCCL's watchdog: which collective since the start, its elements, its limit in seconds
    checkpoint_numel, model_numel, recomputed_numel
        elements of a tensor: in a checkpoint, in the model that loads it, computed again by gradient checkpointing
    loss, learning_rate
        of the metrics that a trainer logs; nan is no number
    num_generations
        answers for each prompt in GRPO
    capability
        compute capability of the GPU, as in 8.6; also where only `sm_86` or `RTX 3090` names it
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kb.logs.codes import capabilities

__all__ = ["UNITS", "Quantities", "quantities"]

Quantities = Mapping[str, tuple[float, ...]]
"""name -> its values, in the order of the text; a quantity that the text does not print is not there"""

_GIB = {"B": 2**-30, "K": 2**-20, "M": 2**-10, "G": 1.0, "T": 2.0**10}  # PyTorch writes MiB, older versions MB
_MAX_CHARS = 2000  # of a message
_MAX_MESSAGES = 256

_SIZE = r"(\d{1,15}(?:\.\d{1,4})?) ?([KMGT]?)(?:i?B|bytes)\b"
_NUMBER = r"(\d{1,12}(?:\.\d{1,20})?(?:e-?\d{1,3})?)\b"
_SHAPE = r"torch\.Size\(\[([\d, ]{0,80})\]\)"


class _Message(NamedTuple):
    """A message that a program prints, and the quantities in it."""

    opening: str
    """the words that it holds; the first one of its quantities stands right behind"""
    patterns: dict[str, re.Pattern[str]]
    """by quantity; groups: a size with its unit, or a number, or the shape of a tensor"""


_MESSAGES = (
    _Message(
        "ried to allocate ",
        {
            "requested": re.compile(rf"allocate {_SIZE}"),
            "gpu": re.compile(r"[GN]PU (\d{1,3})(?:;| has a total)"),
            "total": re.compile(rf"{_SIZE} total capacity|total capaci?ty of {_SIZE}"),
            "free": re.compile(rf"{_SIZE} free[;)]|of which {_SIZE} is free"),
            "allocated": re.compile(rf"{_SIZE} already allocated|{_SIZE} is allocated by PyTorch"),
            "reserved": re.compile(rf"{_SIZE} reserved in total by PyTorch"),
            # Before 1.4 `cached` was what is reserved and not allocated.
            "unallocated": re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated|{_SIZE} cached\)"),
        },
    ),
    _Message("SeqNum=", {"seqnum": re.compile(rf"SeqNum={_NUMBER}")}),
    _Message(
        "WorkNCCL(",
        {
            "numel": re.compile(r"NumelIn=(\d{1,15})\b|TensorShape=\[([\d, ]{0,80})\]"),
            "timeout": re.compile(rf"Timeout\(ms\)={_NUMBER}"),
        },
    ),
    _Message(
        "copying a param with shape ",
        {
            "checkpoint_numel": re.compile(rf"shape {_SHAPE} from checkpoint"),
            "model_numel": re.compile(rf"current model is {_SHAPE}"),
        },
    ),
    _Message("recomputed metadata: ", {"recomputed_numel": re.compile(rf"metadata: \{{'shape': {_SHAPE}")}),
    _Message("'loss': ", {"loss": re.compile(rf"'loss': '?{_NUMBER}")}),
    _Message("'learning_rate': ", {"learning_rate": re.compile(rf"'learning_rate': '?{_NUMBER}")}),
    _Message("num_generations", {"num_generations": re.compile(rf"num_generations['\"]?[ =:]{{1,3}}{_NUMBER}")}),
    _Message(
        "generations per prompt ", {"num_generations": re.compile(rf"You provided {_NUMBER}|prompt \({_NUMBER}\)")}
    ),
)

# Product -> compute capability, of those whose name has one meaning.
_PRODUCTS = {
    "GTX10": 6.1, "P100": 6.0, "P40": 6.1, "V100": 7.0, "T4": 7.5, "GTX16": 7.5, "RTX20": 7.5, "A100": 8.0, "A800": 8.0,
    "A30": 8.0, "A10": 8.6, "A40": 8.6, "RTX30": 8.6, "RTX40": 8.9, "L20": 8.9, "L40": 8.9, "L40S": 8.9, "H100": 9.0,
    "H800": 9.0, "H200": 9.0, "H20": 9.0, "B200": 10.0, "RTX50": 12.0,
}  # fmt: skip
_PRODUCT = re.compile(
    r"\b(?:([GR]TX ?(?:1[06]|[2-5]0))[6-9]0\b|(?:Tesla|NVIDIA) (T4)\b|"
    r"(A100|A800|A30|A10|A40|H100|H800|H200|H20|B200|V100|P100|P40|L40S|L40|L20)\b(?!-\d))"
)
_CAPABILITY = re.compile(r"compute capability:? ?(?:is |of )?(\d{1,2}\.\d)\b(?!\+)", re.IGNORECASE)

UNITS: dict[str, str] = {
    **dict.fromkeys((name for message in _MESSAGES for name in message.patterns), ""),
    "capability": "",
    **dict.fromkeys(("requested", "total", "free", "allocated", "reserved", "unallocated", "missing"), "GiB"),
    "timeout": "s",
}
"""quantity -> its unit; "" for a plain number"""


def quantities(text: str) -> Quantities:
    """The quantities that the text prints; empty for most texts. Linear in it, and never raises."""
    found: dict[str, list[float]] = {}
    for message in _MESSAGES:
        if message.opening in text:
            for part in _parts(text, message.opening):
                for name, value in _derived(_read(part, message)).items():
                    found.setdefault(name, []).append(value)
    if cards := list(_cards(text)):
        found["capability"] = cards
    return {name: tuple(dict.fromkeys(values)) for name, values in found.items()}


def _parts(text: str, opening: str) -> Iterator[str]:
    """The text from each place of `opening` to the next one."""
    at = text.find(opening)
    for _ in range(_MAX_MESSAGES):
        if at < 0:
            return
        after = text.find(opening, at + len(opening))
        yield text[at : min(at + _MAX_CHARS, after if after >= 0 else len(text))]
        at = after


def _read(part: str, message: _Message) -> dict[str, float]:
    matches = ((name, pattern.search(part)) for name, pattern in message.patterns.items())
    return {
        name: _value(name, [group for group in match.groups() if group is not None]) for name, match in matches if match
    }


def _value(name: str, groups: list[str]) -> float:
    """`groups`: a size and the first letter of its unit ("" for bytes), or a number, or the sides of a tensor (of one
    that is printed by its number of elements, that alone)."""
    if len(groups) == 2:
        return float(groups[0]) * _GIB[groups[1] or "B"]
    if name.endswith("numel"):
        return float(math.prod(int(side) for side in groups[0].replace(",", " ").split()))
    return float(groups[0]) / 1000 if name == "timeout" else float(groups[0])


def _derived(found: dict[str, float]) -> dict[str, float]:
    """With `unallocated` where the message prints `reserved`, and the reverse; with what is missing for the request."""
    if "allocated" in found and "reserved" in found:
        found = {**found, "unallocated": found["reserved"] - found["allocated"]}
    elif "allocated" in found and "unallocated" in found:
        found = {**found, "reserved": found["allocated"] + found["unallocated"]}
    if {"requested", "free", "unallocated"} <= found.keys():
        found = {**found, "missing": found["requested"] - found["free"] - found["unallocated"]}
    return found


def _cards(text: str) -> Iterator[float]:
    """The compute capabilities of the cards that the text names."""
    if "apability" in text:
        yield from map(float, _CAPABILITY.findall(text))
    if "sm_" in text:
        yield from (float(f"{major}.{minor}") for major, minor in capabilities(text))
    if any(name[:3] in text for name in _PRODUCTS):
        names = (match[match.lastindex or 0].replace(" ", "") for match in _PRODUCT.finditer(text))
        yield from (_PRODUCTS[name] for name in names if name in _PRODUCTS)
