"""What is asked: `/api/search`."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from kb.brief import cure, likely_hits, tells_apart
from kb.serve import nodes, params
from kb.serve.guards import Refusal
from kb.serve.metrics import Metrics
from kb.serve.routes import Table, dumped, json_response
from kb.why import answer_with_why

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["table"]

# A short question takes a few milliseconds, and a thread would add one more. A log may take a hundred, and other
# requests must not wait for it.
_INLINE_CHARS = 4000
_THREADS = 2


def table(base: AnyBase, metrics: Metrics) -> Table:
    asking = _Asking(base, metrics)
    return Table({"/api/search": {"GET": asking.search, "POST": asking.search}})


class _Asking:
    def __init__(self, base: AnyBase, metrics: Metrics) -> None:
        self._base = base
        self._metrics = metrics
        self._threads = ThreadPoolExecutor(_THREADS, "kb-search")

    async def search(self, request: Request) -> Response:
        options: params.SearchOptions
        if request.method == "POST":
            if request.headers.get("content-type", "").partition(";")[0].strip().casefold() != "application/json":
                raise Refusal(415, "the body must be application/json", '{"query": "the error message"}')
            options = body = params.from_json(await request.body(), params.SearchBody)
            text = body.query
        else:
            options = pairs = params.from_pairs(request.query_params.multi_items(), params.SearchParams)
            text = pairs.q
        if len(text) <= _INLINE_CHARS:
            return json_response(self._answer(text, options))
        loop = asyncio.get_running_loop()
        return json_response(await loop.run_in_executor(self._threads, self._answer, text, options))

    def _answer(self, text: str, options: params.SearchOptions) -> bytes:
        result = self._base.search(
            text,
            k=options.k,
            lang=options.lang,
            only=options.only,
            project=options.project,
            min_confidence=options.min_confidence,
        )
        self._metrics.count_answer(result.verdict)
        answer = answer_with_why(result) if options.why else result.as_dict()
        if options.render:
            likely = [hit.record for hit in likely_hits(result)]
            for one, hit in zip(answer["results"], result.hits, strict=True):
                one |= {"tree": nodes.tree(hit.record), "cure": cure(hit.record)}
                if hit.record in likely:
                    one["tells_apart"] = tells_apart(hit.record, [other for other in likely if other is not hit.record])
        return dumped(answer)
