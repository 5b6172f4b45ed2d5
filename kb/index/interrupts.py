"""Signals during a build: one that comes while a segment is written, waits until it is."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["held_back"]

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


@contextmanager
def held_back() -> Iterator[None]:
    """Signals that a Python function handles are handled at the end. A second Ctrl-C counts at once: somebody is in a
    hurry. Does nothing beside the main thread, where signals are not heard."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []

    def note(number: int, frame: FrameType | None) -> None:
        came.append((number, frame))
        if number == signal.SIGINT:
            signal.signal(number, kept[number])

    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    kept = {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    try:
        for number in kept:
            signal.signal(number, note)
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
    for number, frame in came[:1]:
        kept[number](number, frame)
