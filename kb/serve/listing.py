"""What the base holds: `/api/issues`, one issue, `/api/projects`.

An issue is looked up at once. What looks at all of a base (the lists, and which ids are near one that is not there) is
done beside the event loop: of 20,000 issues it takes the better part of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response

from kb.brief import cure
from kb.serve import nodes, params
from kb.serve.guards import Refusal
from kb.serve.routes import Table, dumped, tagged_response
from kb.serve.work import Work

if TYPE_CHECKING:
    from kb.bases import AnyBase

__all__ = ["table"]


def table(base: AnyBase, aside: Work) -> Table:
    listing = _Listing(base, aside)
    return Table(
        {
            "/api/issues": {"GET": listing.issues},
            "/api/issues/{slug:path}/{number}": {"GET": listing.issue},
            "/api/projects": {"GET": listing.projects},
        }
    )


class _Listing:
    def __init__(self, base: AnyBase, aside: Work) -> None:
        self._base = base
        self._aside = aside

    async def issue(self, request: Request) -> Response:
        given = params.from_pairs(request.query_params.multi_items(), params.IssueParams)
        snapshot = self._base.snapshot
        issue = f"{request.path_params['slug']}#{request.path_params['number']}"
        records = [r for r in self._base.issue(issue) if given.only in (None, r.lang)]
        records = [r for r in records if r.lang == given.lang] or records
        if not records:
            near = await self._aside.run(request, lambda _: self._base.near(issue))
            raise Refusal(404, "there is no such issue in this base", f"near it: {', '.join(near)}" if near else None)

        def answer() -> bytes:
            translations = [
                {**r.as_dict(), **({"tree": nodes.tree(r), "cure": cure(r)} if given.render else {})} for r in records
            ]
            told = {"issue": records[0].issue, "snapshot": snapshot, "translations": translations}
            return dumped(told)

        return tagged_response(request, snapshot, answer)

    async def issues(self, request: Request) -> Response:
        given = params.from_pairs(request.query_params.multi_items(), params.ListParams)
        return await self._aside.run(request, lambda _: self._issues(request, given))

    def _issues(self, request: Request, given: params.ListParams) -> Response:
        catalogue = self._base.catalogue()
        project = (given.project or "").casefold()

        def answer() -> bytes:
            every = catalogue.issues.values()
            chosen = (next((r for r in records if r.lang == given.lang), records[0]) for records in every)
            found = [
                {name: getattr(r, name) for name in ("issue", "lang", "project", "title", "tags")}
                for r in chosen
                if not project or project == (r.project or "").casefold()
            ]
            return dumped({"snapshot": catalogue.snapshot, "issues": found})

        return tagged_response(request, catalogue.snapshot, answer)

    async def projects(self, request: Request) -> Response:
        params.from_pairs(request.query_params.multi_items(), params.NoParams)
        return await self._aside.run(request, lambda _: self._projects(request))

    def _projects(self, request: Request) -> Response:
        catalogue = self._base.catalogue()
        found = ({"project": project, "issues": count} for project, count in catalogue.projects)
        return tagged_response(request, catalogue.snapshot, lambda: dumped([*found]))
