"""Change screen: outcome, gate decision, and the service before and after the change."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.changes.queries.change_comparison import Comparison, select_comparison
from ....storage.changes.queries.change_timeline import select_group
from ....storage.changes.queries.console_changes import select_change_of, select_titles
from ....storage.changes.rows import PhaseRow
from ....storage.changes.rules.change_comparison import HORIZONS, Side
from ....storage.core.instant import Instant
from ....storage.engine.pools import Isolation
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ...ui.change_text import difference, gated, sentence_of, side, sign_of
from ...ui.data_table import MaintenanceTable, exact
from ...ui.form_routes import page_route
from ...ui.formatting import NOTHING, Moment, duration, moment
from ...ui.reliability_text import ReliabilityText, precisely
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...ui.shown_time import zone_word
from ...wire.errors import Problem
from ...wire.route import Request, Response
from .change_list import follow_of

HORIZON_WORDS: Final = {"15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h"}


class ChangeQuery(msgspec.Struct, frozen=True):
    horizon: Literal["15m", "1h", "6h", "24h"] = "1h"


@dataclass(frozen=True, slots=True)
class ChangeStat:
    label: str
    told: ReliabilityText


@dataclass(frozen=True, slots=True)
class PhaseItem:
    word: str
    at: Moment
    by: str
    ref: str
    url: str
    decision: UUID | None


async def render_change(ask: Request) -> Response:
    query: ChangeQuery = ask.query
    with ask.context.change_reads.permit("", ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction(
            "console_change", read_only=True, isolation=Isolation.REPEATABLE_READ
        ) as tx:
            frame = await frame_of(ask, tx)
            row = await select_service(tx, ask.ids["serviceID"])
            if row is None:
                raise Problem("not_found")
            change = await select_change_of(tx, row.key, ask.ids["changeID"])
            if change is None:
                raise Problem("not_found")
            group = await select_group(tx, row.key, change)
            found = await select_comparison(tx, row, group.phases, query.horizon)
            named = [one.incident for one in group.incidents]
            titles = await select_titles(tx, row.org, named)
            now = tx.now
    return page(
        "changes/console/change_detail.html",
        frame=frame,
        row=row,
        change=change,
        uid=group.phases[0].uid,
        sign=sign_of(change.kind, group.phases),
        sentence=sentence_of(change, group.phases, group.ref, row.name),
        length=_length(group.phases),
        url=group.url,
        horizons=[(name, HORIZON_WORDS[name]) for name in HORIZONS],
        horizon=query.horizon,
        figures=[] if found is None else _figures(found, row),
        table=None if found is None else _table(found),
        phases=[_phase(one, now) for one in group.phases],
        gated=gated(group.decision, group.decided),
        follows=[follow_of(one, titles) for one in group.incidents],
    )


def _length(phases: Sequence[PhaseRow]) -> str:
    if len(phases) < 2:
        return ""
    return duration(phases[-1].occurred_at - phases[0].occurred_at)


def _figures(found: Comparison, row: ServiceRow) -> list[ChangeStat]:
    return [
        ChangeStat("Before", side(found.before, row.sealed_through)),
        ChangeStat("After", side(found.after, row.sealed_through)),
        ChangeStat("Difference", difference(found.delta, (found.before, found.after))),
    ]


def _table(found: Comparison) -> MaintenanceTable:
    return MaintenanceTable(
        "Compared periods",
        ["Period", f"From, {zone_word()}", "To", "Good", "Bad", "Unknown", "Maintenance"],
        [_made_of("Before", found.before), _made_of("After", found.after)],
        0,
    )


def _made_of(name: str, of: Side) -> list[str]:
    span = [name, exact(of.span.from_), exact(of.span.until)]
    if of.facts is None:
        return [*span, *[NOTHING] * 4]
    split = of.facts.split
    lengths = (split.good_us, split.bad_us, split.unknown_us, split.excluded_us)
    return [*span, *(precisely(length) for length in lengths)]


def _phase(one: PhaseRow, now: Instant) -> PhaseItem:
    by = f"{one.actor_label}, a token" if one.via_token else one.actor_label
    at = moment(one.occurred_at, now)
    return PhaseItem(one.phase.value, at, by, one.ref, one.url, one.decision)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/services/{serviceID}/changes/{changeID}",
        action=Permission(Need.VIEWER),
        scope=("service", "serviceID"),
        handler=render_change,
        summary="A change of a service.",
        query=ChangeQuery,
    ),
)
