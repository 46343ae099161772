"""Changes of a project's services: the first tab of "Changes & gate"."""

from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.changes.queries.console_changes import select_titles
from ....storage.changes.queries.project_changes import (
    COUNTED_MOST,
    ProjectChange,
    ProjectChangeFilter,
    count_project_changes,
    select_project_changes,
)
from ....storage.changes.rules.change import ChangeKind
from ....storage.core.instant import DAY
from ....storage.engine.pools import Isolation
from ....storage.services.queries.services import select_services_of_project
from ...services.console.service_data import changes_within
from ...ui.change_text import KINDS
from ...ui.form_routes import page_route
from ...ui.formatting import Moment, count, moment, number
from ...ui.plots.timeline_lanes import ChangeOutcomeClass
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.cursor import read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .change_list import ChangeItem, row_of

PAGE_ROWS: Final = 50
DAYS: Final = 30
TEXT_LONGEST: Final = 200
_MARKS: Final = {
    ChangeOutcomeClass.GOING.value: "pending",
    ChangeOutcomeClass.SUCCEEDED.value: "up",
    ChangeOutcomeClass.FAILED.value: "down",
    ChangeOutcomeClass.CANCELLED.value: "paused",
}


class ProjectChangesQuery(msgspec.Struct, frozen=True):
    q: str = ""
    # Empty for all kinds. `service` is an id, empty for all services.
    kind: Literal["", "deploy", "rollback", "flag"] = ""
    service: str = ""
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class ProjectChangeItem:
    """`mark` and `outcome` state how the change ended. `by` is the newest actor."""

    item: ChangeItem
    service: UUID
    service_name: str
    at: Moment
    mark: str
    by: str


async def render_project_changes(ask: Request) -> Response:
    query: ProjectChangesQuery = ask.query
    org, project = org_of(ask), project_of(ask)
    text = query.q.strip()[:TEXT_LONGEST]
    bound = ("project_changes", str(ask.ids["projectID"]), query.kind, query.service, text)
    last = read_cursor(query.cursor or None, bound, 2)
    async with ask.context.pool.transaction(
        "console_project_changes", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        frame = await frame_of(ask, tx)
        services = await select_services_of_project(tx, org, project)
        chosen = next((one for one in services if str(one.uid) == query.service), None)
        if query.service and chosen is None:
            raise Problem("not_found")
        wanted = ProjectChangeFilter(
            [ChangeKind(query.kind)] if query.kind else list(ChangeKind),
            None if chosen is None else chosen.uid,
            text,
        )
        within = changes_within(tx.now, DAYS * DAY)
        before = None if last is None else (last[0], last[1])
        found = await select_project_changes(
            tx, org, project, within, wanted, before, PAGE_ROWS + 1
        )
        many = await count_project_changes(tx, org, project, within, wanted)
        shown = found[:PAGE_ROWS]
        named = {each.incident for one in shown for each in one.group.incidents[:1]}
        titles = await select_titles(tx, org, named)
        rows = [_item(one, titles, moment(one.group.change.latest_at, tx.now)) for one in shown]
    older = ""
    if len(found) > PAGE_ROWS:
        change = shown[-1].group.change
        older = write_cursor([change.latest_at, change.id], bound)
    return page(
        "changes/console/project_changes.html",
        frame=frame,
        sentence=_sentence(many, narrowed=bool(query.kind or text or chosen)),
        rows=rows,
        many=many,
        services=services,
        chosen=chosen,
        kinds=[(kind.value, f"{KINDS[kind].capitalize()}s") for kind in ChangeKind],
        kind=query.kind,
        q=text,
        is_narrowed=bool(query.kind or text or chosen),
        same=urlencode({"q": text, "kind": query.kind, "service": query.service}),
        older=older,
        is_later=last is not None,
    )


def _sentence(many: int, *, narrowed: bool) -> str:
    if not many:
        return "No changes match" if narrowed else f"No changes in {DAYS} days"
    told = f"More than {number(COUNTED_MOST)} changes" if many > COUNTED_MOST else ""
    return f"{told or count(many, 'change')} in {DAYS} days"


def _item(one: ProjectChange, titles: dict[UUID, str], at: Moment) -> ProjectChangeItem:
    phases = one.group.phases
    outcome = row_of(one.group, titles, one.group.change.latest_at)
    return ProjectChangeItem(
        outcome,
        one.service_uid,
        one.service_name,
        at,
        _MARKS[outcome.sign.outcome],
        phases[-1].actor_label or one.group.change.source,
    )


ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/changes",
        action=Permission(Need.VIEWER),
        scope=("project", "projectID"),
        handler=render_project_changes,
        summary="Changes of a project.",
        query=ProjectChangesQuery,
    ),
)
