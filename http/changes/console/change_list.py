"""Changes of a service over some days: a plot above its state, and a list."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import urlencode
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.changes.queries.change_timeline import ChangeGroup, Followed, select_timeline
from ....storage.changes.queries.changes import Happened
from ....storage.changes.queries.console_changes import (
    COUNTED_MOST,
    HAPPENED_MOST,
    count_changes,
    select_happened,
    select_sources,
    select_titles,
)
from ....storage.changes.rules.change import ChangeKind, Code, kept, source_rule_broken
from ....storage.changes.rules.change_precedence import ChangeRole
from ....storage.core.instant import DAY, Instant
from ....storage.core.refusal import Refused
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Isolation, Tx
from ....storage.services.queries.console_services import IncidentOf, select_incidents_of
from ....storage.services.queries.service_revisions import select_revisions
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ...services.console import state_history as states
from ...services.console.budget_plot import ticks
from ...services.console.service_data import RANGES, ServiceBucket, changes_within, select_sealed
from ...services.console.service_timeline import TimelinePlot, incident_bands, incident_text, table
from ...ui.change_marks import counted, marks, marks_text
from ...ui.change_text import (
    KINDS,
    OUTCOMES,
    ChangeDecisionText,
    ChangeSymbol,
    before,
    gated,
    name_of,
    outcome_of,
    short,
    sign_of,
)
from ...ui.form_routes import page_route
from ...ui.formatting import Moment, ago, count, moment, number
from ...ui.plots.timeline_lanes import Lanes, lanes
from ...ui.render import page
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.cursor import read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.route import Request, Response

PAGE_ROWS: Final = 50
# Incidents per row. The change screen shows all of them.
FOLLOWED_SHOWN: Final = 1
URL_SHOWN_MOST: Final = 200
# The list below the plot shows the changes too.
TABLE_MOST: Final = 30
RANGE_WORDS: Final = {"7d": "7 d", "14d": "14 d", "30d": "30 d"}


class ChangeListQuery(msgspec.Struct, frozen=True):
    range: Literal["7d", "14d", "30d"] = "30d"
    # All kinds if empty. The same applies to the source.
    kind: Literal["", "deploy", "rollback", "flag"] = ""
    source: str = ""
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class ChangeListData:
    frame: PageLayout
    row: ServiceRow
    now: Instant
    hours: Sequence[ServiceBucket]
    incidents: Sequence[IncidentOf]
    changes: Sequence[Happened]
    many: int
    groups: Sequence[ChangeGroup]
    titles: Mapping[UUID, str]
    sources: Sequence[str]


@dataclass(frozen=True, slots=True)
class FollowingIncident:
    uid: UUID
    title: str
    before: str
    note: str


@dataclass(frozen=True, slots=True)
class ChangeItem:
    """`phases` are (name, instant) pairs. `url` is empty if it is too long."""

    uid: UUID
    sign: ChangeSymbol
    name: str
    outcome: str
    source: str
    external_id: str
    url: str
    phases: Sequence[tuple[str, Moment]]
    gated: ChangeDecisionText | None
    follows: Sequence[FollowingIncident]
    further: int


async def render_change_list(ask: Request) -> Response:
    query: ChangeListQuery = ask.query
    source = _source(query.source)
    bound = ("console_changes", str(ask.ids["serviceID"]), query.kind, source)
    last = read_cursor(query.cursor or None, bound, 2)
    with ask.context.change_reads.permit("", ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction(
            "console_changes", read_only=True, isolation=Isolation.REPEATABLE_READ
        ) as tx:
            facts = await _select(ask, tx, source, None if last is None else (last[0], last[1]))
    shown = facts.groups[:PAGE_ROWS]
    older = ""
    if len(facts.groups) > PAGE_ROWS:
        change = shown[-1].change
        older = write_cursor([change.latest_at, change.id], bound)
    newest = facts.changes[0] if facts.changes else None
    return page(
        "changes/console/change_list.html",
        frame=facts.frame,
        row=facts.row,
        sentence=summary(facts, query.range, query.kind, source),
        newest="" if newest is None else _newest(newest, facts.now),
        is_known=bool(facts.sources),
        is_narrowed=bool(query.kind or source),
        plot=_plot(facts, query.range),
        drawn_most=HAPPENED_MOST if len(facts.changes) == HAPPENED_MOST else 0,
        ranges=list(RANGE_WORDS.items()),
        range_name=query.range,
        kinds=[(kind.value, f"{KINDS[kind].capitalize()}s") for kind in ChangeKind],
        kind=query.kind,
        sources=facts.sources,
        source=source or "",
        same=urlencode({"kind": query.kind, "source": source or ""}),
        rows=[row_of(group, facts.titles, facts.now) for group in shown],
        older=older,
        is_later=last is not None,
    )


def _source(text: str) -> str | None:
    source = kept(text)
    if not source:
        return None
    rule = source_rule_broken(source)
    if rule is not None:
        raise Refused(Code.SOURCE_INVALID, "source", rule)
    return source


async def _select(
    ask: Request, tx: Tx, source: str | None, last: tuple[int, int] | None
) -> ChangeListData:
    query: ChangeListQuery = ask.query
    row = await select_service(tx, ask.ids["serviceID"])
    if row is None:
        raise Problem("not_found")
    now, length = tx.now, RANGES[query.range][0]
    kinds = [ChangeKind(query.kind)] if query.kind else list(ChangeKind)
    within = changes_within(now, length)
    groups = await select_timeline(tx, row.key, within, kinds, source, last, PAGE_ROWS + 1)
    named = {one.incident for group in groups for one in group.incidents[:FOLLOWED_SHOWN]}
    until = row.sealed_through or now
    return ChangeListData(
        frame=await frame_of(ask, tx),
        row=row,
        now=now,
        hours=await select_sealed(tx, row, Instant(until - length - DAY), until, "hour"),
        incidents=await _incidents(tx, row, TimeSpan(within.from_, Instant(now + 1))),
        changes=await select_happened(tx, row.key, within, kinds, source),
        many=await count_changes(tx, row.key, within, kinds, source),
        groups=groups,
        titles=await select_titles(tx, row.org, named),
        sources=await select_sources(tx, row.key),
    )


async def _incidents(tx: Tx, row: ServiceRow, within: TimeSpan) -> list[IncidentOf]:
    """Returns the incidents of the service and of its current and former members."""
    revisions = (await select_revisions(tx, [row.key]))[row.key]
    ever = sorted({member for revision in revisions for member in revision.monitors})
    return await select_incidents_of(
        tx, row.org, row.project, row.id, ever, within.from_, within.until
    )


def summary(facts: ChangeListData, range_name: str, kind: str, source: str | None) -> str:
    name = facts.row.name
    if not facts.sources:
        return f"No changes of {name} yet"
    noun = KINDS[ChangeKind(kind)] if kind else "change"
    what = f"{name} by {source}" if source else name
    days = f"the last {RANGES[range_name][0] // DAY} days"
    if not facts.many:
        return f"No {noun} of {what} in {days}"
    if facts.many > COUNTED_MOST:
        return f"More than {number(COUNTED_MOST)} {noun}s of {what} in {days}"
    return f"{count(facts.many, noun)} of {what} in {days}"


def _newest(one: Happened, now: Instant) -> str:
    """Returns a sentence about the newest phase."""
    change = one.change
    ended = OUTCOMES[outcome_of(one.phases)]
    at = ago(change.latest_at, now).text
    return f"The newest: {short(name_of(change, one.ref))}, {ended}, {at}."


def _plot(facts: ChangeListData, range_name: str) -> TimelinePlot:
    length, step = RANGES[range_name]
    from_, to = Instant(facts.now - length), facts.now

    def share(at: Instant) -> float:
        return (min(max(at, from_), to) - from_) / length

    slots = states.slots(facts.row, facts.hours, from_, to, step)
    drawn = Lanes(
        changes=marks(facts.changes, from_, to, share),
        states=states.drawn(slots, share),
        incidents=incident_bands(facts.incidents, to, share),
        ticks=ticks(from_, to),
    )
    said = (
        f"{length // DAY} days on one axis: {counted(facts.changes)}, state, "
        f"{count(len(facts.incidents), 'incident')}"
    )
    found = [
        *marks_text(facts.changes),
        *states.plot_text(slots),
        *incident_text(facts.incidents),
    ]
    return TimelinePlot(
        lanes(drawn, said), table("Changes, state and incidents", found, TABLE_MOST)
    )


def row_of(group: ChangeGroup, titles: Mapping[UUID, str], now: Instant) -> ChangeItem:
    change = group.change
    shown = group.incidents[:FOLLOWED_SHOWN]
    return ChangeItem(
        uid=group.phases[0].uid,
        sign=sign_of(change.kind, group.phases),
        name=short(name_of(change, group.ref)),
        outcome=OUTCOMES[outcome_of(group.phases)],
        source=change.source,
        external_id=short(change.external_id),
        url=group.url if len(group.url) <= URL_SHOWN_MOST else "",
        phases=[(one.phase.value, moment(one.occurred_at, now)) for one in group.phases],
        gated=gated(group.decision, group.decided),
        follows=[follow_of(one, titles) for one in shown],
        further=len(group.incidents) - len(shown),
    )


def follow_of(one: Followed, titles: Mapping[UUID, str]) -> FollowingIncident:
    note = "of a dependent service" if one.role is ChangeRole.UPSTREAM else ""
    title = titles.get(one.incident, "an incident")
    return FollowingIncident(one.incident, short(title), before(one.lag_seconds), note)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/services/{serviceID}/changes",
        action=Permission(Need.VIEWER),
        scope=("service", "serviceID"),
        handler=render_change_list,
        summary="Changes of a service.",
        query=ChangeListQuery,
    ),
)
