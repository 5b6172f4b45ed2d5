"""Several segments are asked side by side: FAISS and numpy let go of the interpreter while they compute."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeVar

__all__ = ["cores", "side_by_side"]

Task = TypeVar("Task")
Answer = TypeVar("Answer")


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def side_by_side(ask: Callable[[Task], Answer], tasks: Sequence[Task], threads: int) -> list[Answer]:
    """`ask` of each task, in order, by so many threads. This one begins with the last task, the others with the first:
    what lets go of the interpreter should stand first, what keeps it last. What one raises is raised, after all have
    ended.

    Threads of their own for each call: to start one takes a tenth of a millisecond, and a pool that is kept would hang
    in a process that was forked from this one.
    """
    waiting = deque(enumerate(tasks))
    answers: dict[int, Answer] = {}
    raised: list[BaseException] = []

    def work(take: Callable[[], tuple[int, Task]]) -> None:
        while not raised:
            try:
                place, task = take()
            except IndexError:
                return
            try:
                answers[place] = ask(task)
            except BaseException as error:  # a thread has nobody to raise it to
                raised.append(error)

    more = min(threads, len(tasks)) - 1
    helpers = [threading.Thread(target=work, args=(waiting.popleft,), name="kb-segment") for _ in range(more)]
    for helper in helpers:
        helper.start()
    work(waiting.pop)
    for helper in helpers:
        helper.join()
    if raised:
        raise raised[0]
    return [answers[place] for place in range(len(tasks))]
