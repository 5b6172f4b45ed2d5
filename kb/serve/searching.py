"""What is asked: `/api/search` for a question, `/api/scan` for a whole log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from kb.brief import cure, likely_hits, short_answer, short_report, tells_apart
from kb.config import settings
from kb.scan import Scans
from kb.search.verdict import KNOWN_AT
from kb.serve import nodes
from kb.serve.bodies import PIECE, Sent
from kb.serve.metrics import Metrics
from kb.serve.params import ScanBody, ScanOptions, SearchBody, SearchOptions, SearchParams, from_pairs
from kb.serve.routes import Table, dumped, json_response
from kb.serve.voting import LOG_END, Listening
from kb.serve.work import ClientGone, Gone, Work
from kb.text.decode import decode
from kb.why import answer_with_why

if TYPE_CHECKING:
    from kb.bases import AnyBase
    from kb.records import SearchResult

__all__ = ["table"]

# A short question takes a few milliseconds, and a thread would add one more. A log may take a hundred, and other
# requests must not wait for it.
_INLINE = 4000  # characters or bytes


def table(base: AnyBase, metrics: Metrics, hears: Listening) -> Table:
    asking = _Asking(base, metrics, hears)
    return Table({"/api/search": {"GET": asking.search, "POST": asking.search}, "/api/scan": {"POST": asking.scan}})


class _Asking:
    def __init__(self, base: AnyBase, metrics: Metrics, hears: Listening) -> None:
        self._base = base
        self._hears = hears
        self._metrics = metrics
        self._work = Work()

    async def search(self, request: Request) -> Response:
        if request.method == "POST":
            sent = await Sent.of(request)
            return await self._response(request, partial(self._answer_sent, sent), short=_is_short(sent))
        options = from_pairs(request.query_params.multi_items(), SearchParams)
        return await self._response(request, partial(self._answer, options.q, options), short=len(options.q) <= _INLINE)

    async def scan(self, request: Request) -> Response:
        sent = await Sent.of(request)
        return await self._response(request, partial(self._scan_sent, sent), short=False)

    async def _response(self, request: Request, work: Callable[[Gone], bytes], *, short: bool) -> Response:
        return json_response(work(_stays) if short else await self._work.run(request, work))

    def _answer_sent(self, sent: Sent, gone: Gone) -> bytes:
        options, pieces = sent.read(SearchOptions, SearchBody)
        text = options.query if isinstance(options, SearchBody) else decode(b"".join(pieces or ()))
        return self._answer(text, options, gone)

    def _answer(self, text: str, options: SearchOptions, gone: Gone) -> bytes:
        if gone():
            raise ClientGone
        given = (options.min_confidence, settings().known_at)  # as the command line has it
        result = self._base.search(
            text,
            k=options.k,
            lang=options.lang,
            only=options.only,
            project=options.project,
            min_confidence=next((one for one in given if one is not None), KNOWN_AT),
        )
        self._metrics.count_answer(result.verdict, draft=options.draft)
        if not options.draft:
            self._hears.note(result)
        return dumped(_form(result, options))

    def _scan_sent(self, sent: Sent, gone: Gone) -> bytes:
        options, pieces = sent.read(ScanOptions, ScanBody)
        if isinstance(options, ScanBody):
            pieces = iter((options.text.encode("utf-8", "replace"),))
        if options.project is not None:
            self._base.search("error", 1, project=options.project)  # raises for a project without issues
        one = Scans(self._base.scanners(options.project), lang=options.lang, warnings=options.warnings)
        end = b""
        for piece in _small(pieces or iter(())):
            if gone():
                raise ClientGone
            one.feed(piece)
            end = (end + piece)[-LOG_END:]
        report = one.finish().at_least(options.min_confidence)
        self._metrics.count_scan(report.verdict)
        if report.verdict == "unknown":
            self._hears.note_log(end)
        return dumped(short_report(report) if options.brief else report.as_dict())


def _form(result: SearchResult, options: SearchOptions) -> dict[str, Any]:
    """The public JSON form, without the question: the client has it."""
    if options.brief:
        return short_answer(result)
    answer = answer_with_why(result) if options.why else result.as_dict()
    del answer["query"]
    if options.render:
        likely = [hit.record for hit in likely_hits(result)]
        for one, hit in zip(answer["results"], result.hits, strict=True):
            one |= {"tree": nodes.tree(hit.record), "cure": cure(hit.record)}
            if hit.record in likely:
                one["tells_apart"] = tells_apart(hit.record, [other for other in likely if other is not hit.record])
    return answer


def _is_short(sent: Sent) -> bool:
    return len(sent.body) <= _INLINE and not sent.is_packed


def _small(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """So small that a scan soon hears when nobody waits for it."""
    return (piece[at : at + PIECE] for piece in pieces for at in range(0, len(piece), PIECE))


def _stays() -> bool:
    """Of work that is done at once."""
    return False
