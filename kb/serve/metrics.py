"""Here is a request that was answered; count it. Ask me, and I tell it in Prometheus' text format.

Labels come from the server's own tables, never from what was asked: a stranger can neither read a question here nor
make a new series with each request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kb.base import KnowledgeBase

__all__ = ["BUCKETS_S", "CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    def __init__(self) -> None:
        self._lock = Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._answers = {"answered": 0, "unanswered": 0}
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()

    def request(self, route: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[route, status] += 1
            self._buckets.setdefault(route, [0] * (len(BUCKETS_S) + 1))[bisect_left(BUCKETS_S, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]  # a Counter adds up floats as well

    def answer(self, answered: bool) -> None:
        with self._lock:
            self._answers["answered" if answered else "unanswered"] += 1

    def tell(self, base: KnowledgeBase) -> str:
        with self._lock:
            lines = [
                "# HELP kb_requests_total HTTP requests by route and status.",
                "# TYPE kb_requests_total counter",
                *(
                    f'kb_requests_total{{route="{route}",status="{status}"}} {count}'
                    for (route, status), count in sorted(self._requests.items())
                ),
                "# HELP kb_questions_total Questions by whether the base answered.",
                "# TYPE kb_questions_total counter",
                *(f'kb_questions_total{{answer="{kind}"}} {count}' for kind, count in self._answers.items()),
                "# HELP kb_request_seconds Time from the request's headers to the end of its answer.",
                "# TYPE kb_request_seconds histogram",
                *(line for route in sorted(self._buckets) for line in self._histogram(route)),
            ]
        lines += [
            "# HELP kb_issues Issues in the base.",
            "# TYPE kb_issues gauge",
            f"kb_issues {base.size}",
            "# HELP kb_snapshot_info Which state of the index is served.",
            "# TYPE kb_snapshot_info gauge",
            f'kb_snapshot_info{{snapshot="{base.snapshot}"}} 1',
        ]
        return "\n".join(lines) + "\n"

    def _histogram(self, route: str) -> list[str]:
        name, total, lines = f'route="{route}"', 0, []
        for limit, count in zip((*BUCKETS_S, "+Inf"), self._buckets[route], strict=True):
            total += count
            lines.append(f'kb_request_seconds_bucket{{{name},le="{limit}"}} {total}')
        lines.append(f"kb_request_seconds_sum{{{name}}} {self._seconds[route]:.6f}")
        lines.append(f"kb_request_seconds_count{{{name}}} {total}")
        return lines
