"""Counts and times of requests for Prometheus, kept by its own client library in a registry of this server alone.

Labels come from the server's own tables, never from a request. So nobody can read a question here, and nobody can make
a new time series with each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from kb.records import Verdict

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["BUCKETS_S", "CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Metrics:
    def __init__(self, base: AnyBase) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "kb_requests", "HTTP requests, by route and status.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "kb_request_seconds",
            "Seconds from the headers of a request to the end of its response.",
            ["route"],
            registry=self._registry,
            buckets=BUCKETS_S,
        )
        questions = Counter(
            "kb_questions",
            "Questions, by verdict: known, likely or unknown.",
            ["verdict"],
            registry=self._registry,
        )
        self._questions = {verdict: questions.labels(verdict) for verdict in get_args(Verdict)}
        scans = Counter("kb_scans", "Logs, by the verdict of their surest issue.", ["verdict"], registry=self._registry)
        self._scans = {verdict: scans.labels(verdict) for verdict in get_args(Verdict)}
        self._drafts = Counter("kb_drafts", "Questions that somebody was still typing.", registry=self._registry)
        ProcessCollector(registry=self._registry)
        self._registry.register(_BaseCollector(base))

    def count_request(self, route: str, status: int, seconds: float) -> None:
        self._requests.labels(route, status).inc()
        self._seconds.labels(route).observe(seconds)

    def count_answer(self, verdict: Verdict, *, draft: bool = False) -> None:
        """`draft`: somebody is still typing, which is no question yet."""
        (self._drafts if draft else self._questions[verdict]).inc()

    def count_scan(self, verdict: Verdict) -> None:
        self._scans[verdict].inc()

    def text(self) -> bytes:
        """Everything in Prometheus' text format 0.0.4."""
        return generate_latest(_WithoutCreationTimes(self._registry))


class _BaseCollector(Collector):
    """Reads size and snapshot of the base at each scrape."""

    def __init__(self, base: AnyBase) -> None:
        self._base = base

    def describe(self) -> Iterator[Metric]:
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily("kb_issues", "Issues in the base.", value=self._base.size)
        snapshot = GaugeMetricFamily("kb_snapshot_info", "The snapshot that is served.", labels=["snapshot"])
        snapshot.add_metric([self._base.snapshot], 1)
        yield snapshot


class _WithoutCreationTimes(CollectorRegistry):
    """A view of a registry without the `_created` series, which the library can switch off only for a whole process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__()
        self._whole = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._whole.collect():
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric
