"""Results of a monitor: heartbeats, latency, availability and the expected-run ledger."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.availability import figure
from ....storage.core.instant import DAY, EARLIEST, HOUR, LATEST, MINUTE, Instant, to_text
from ....storage.core.refusal import Refused
from ....storage.core.time_span import TimeSpan
from ....storage.engine.pools import Tx
from ....storage.figures.queries.availability import Days, select_days
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.monitors.rows import MonitorRow
from ....storage.results.queries.latency import LatencyFigures, select_latency
from ....storage.results.queries.results import (
    FIRST,
    HeartbeatRow,
    RunRow,
    select_heartbeats,
    select_ledger,
    select_packed_from,
)
from ...wire.cursor import page_limit, read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.next_page import next_page
from ...wire.route import Request, Response, Route
from ...wire.schema import known
from ...wire.time_params import instant_if_given
from ..schemas.monitors import (
    DailyAvailability,
    ExpectedRun,
    ExpectedRuns,
    Heartbeat,
    Latency,
    LatencyPoint,
    LatencyTotal,
    VerdictWord,
)

HEARTBEATS_MOST: Final = 1_000
POINTS_MOST: Final = 500
DAYS_MOST: Final = 365
_STEPS: Final = {"minute": MINUTE, "hour": HOUR, "day": DAY}


class HeartbeatsQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """`limit` is capped at 1 000; older results are on the next pages.

    The range contains `from` and does not contain `to`.
    """

    limit: Annotated[int, Meta(ge=1)] = 100
    cursor: str | None = None
    from_: str | None = None
    to: str | None = None


class DaysQuery(msgspec.Struct, frozen=True):
    days: Annotated[int, Meta(ge=1, le=DAYS_MOST)] = 90


class LatencyQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    from_: str | None = None
    to: str | None = None
    step: Literal["minute", "hour", "day"] | None = None


class RunsQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    from_: str | None = None
    to: str | None = None
    verdict: list[VerdictWord] = []
    cursor: str | None = None
    limit: str = "50"


async def heartbeats(ask: Request) -> Response:
    """The header `Link` names the page of the next older results."""
    most = min(ask.query.limit, HEARTBEATS_MOST)
    from_at = max(instant_if_given("from", ask.query.from_) or FIRST, FIRST)
    to_at = instant_if_given("to", ask.query.to)
    if to_at is not None and to_at <= from_at:
        raise Problem("range_invalid")
    async with ask.context.pool.transaction("heartbeats", read_only=True) as tx:
        row = await _monitor(ask, tx)
        bound: tuple[object, ...] = ("heartbeats", row.uid)
        if ask.query.from_ or ask.query.to:
            bound = (*bound, from_at, to_at)
        last = read_cursor(ask.query.cursor, bound, 1)
        before = Instant(last[0]) if last else to_at or LATEST
        if not EARLIEST <= before <= LATEST:
            raise Problem("cursor_invalid")
        found = await select_heartbeats(tx, row.key, most + 1, before, from_at)
    page = found[:most]
    more = len(found) > most
    headers = next_page(ask, write_cursor([page[-1].ts], bound)) if more else {}
    return Response(body=[_heartbeat(row, beat) for beat in page], headers=headers)


def _heartbeat(row: MonitorRow, beat: HeartbeatRow) -> Heartbeat:
    return Heartbeat(
        monitor_id=row.uid,
        ts=to_text(beat.ts),
        up=beat.up,
        latency_ms=beat.latency_ms,
        code=known(beat.code),
        msg=beat.msg,
        conditions=[beat.failed.text] if beat.failed else UNSET,
    )


async def latency(ask: Request) -> Latency:
    from_at, to_at = _demand_range(ask.query.from_, ask.query.to)
    step = ask.query.step or _step_for(to_at - from_at)
    if (to_at - from_at) // _STEPS[step] > POINTS_MOST:
        raise Problem("range_too_wide")
    async with ask.context.pool.transaction("latency", read_only=True) as tx:
        row = await _monitor(ask, tx)
        found = await select_latency(tx, row.key, TimeSpan(from_at, to_at), _STEPS[step])
    if found is None:
        raise Problem("range_too_wide")
    return Latency(
        from_=to_text(from_at),
        to=to_text(to_at),
        step=step,
        points=[
            LatencyPoint(
                start=to_text(point.start or from_at),
                count=point.count,
                p50_ms=point.p50_ms,
                p95_ms=point.p95_ms,
                p99_ms=point.p99_ms,
            )
            for point in found.points
        ],
        total=_total(found),
    )


def _total(found: LatencyFigures) -> LatencyTotal | UnsetType:
    row = found.total
    if row is None:
        return UNSET
    return LatencyTotal(
        count=row.count,
        p50_ms=row.p50_ms,
        p95_ms=row.p95_ms,
        p99_ms=row.p99_ms,
        relative_error=found.relative_error,
    )


async def availability(ask: Request) -> list[DailyAvailability]:
    async with ask.context.pool.transaction("availability", read_only=True) as tx:
        row = await _monitor(ask, tx)
        key = row.key
        found = (await select_days(tx, {key: row.type}, tx.now, ask.query.days))[key]
        kept_from = await _kept_from(tx, ask.context.options.heartbeat_days)
    return daily(found, kept_from)


def daily(found: Days, latency_kept_from: Instant) -> list[DailyAvailability]:
    """Returns one item per day. The first has the start of the data if that is later."""
    items = []
    for n, (day, measured) in enumerate(found.days):
        said = figure(measured.split)
        data_from = latency_from = None
        if n == 0 and found.begun is not None:
            data_from = found.begun if found.begun > day else None
            kept = max(found.begun, latency_kept_from)
            latency_from = kept if kept > day else None
        items.append(
            DailyAvailability(
                day=to_text(day),
                up=measured.up,
                total=measured.total,
                uptime_percent=known(said.uptime_percent),
                coverage=said.coverage,
                data_from=known(to_text(data_from) if data_from else None),
                latency_from=known(to_text(latency_from) if latency_from else None),
            )
        )
    return items


async def expected_runs(ask: Request) -> ExpectedRuns:
    limit = page_limit(ask.query.limit)
    from_at = instant_if_given("from", ask.query.from_) or Instant(0)
    to_at = instant_if_given("to", ask.query.to) or LATEST
    if to_at <= from_at:
        raise Problem("range_invalid")
    bound = ("expected-runs", str(ask.ids["monitorID"]), from_at, to_at, *ask.query.verdict)
    before = read_cursor(ask.query.cursor, bound, 1)
    async with ask.context.pool.transaction("expected_runs", read_only=True) as tx:
        row = await _monitor(ask, tx)
        if row.project_uid != ask.ids["projectID"]:
            raise Refused("not_found")
        kept_from = await _kept_from(tx, ask.context.options.ledger_days)
        ledger_from = max(row.created_at, kept_from)
        found = await select_ledger(
            tx,
            row.key,
            max(from_at, ledger_from),
            # Windows are reserved ahead. A window that is not due yet is not listed.
            min(to_at, Instant(max(before[0], 0)) if before else to_at, Instant(tx.now + 1)),
            ask.query.verdict or None,
            limit + 1,
        )
    more = len(found) > limit
    page = found[:limit]
    return ExpectedRuns(
        ledger_from=to_text(ledger_from),
        items=[_run(item) for item in page],
        next_cursor=write_cursor([page[-1].due_at], bound) if more else None,
    )


def _run(item: RunRow) -> ExpectedRun:
    return ExpectedRun(
        due_at=to_text(item.due_at),
        verdict=item.verdict,  # type: ignore[arg-type]
        reason=known(item.reason),
        settled_at=to_text(item.settled_at) if item.settled_at is not None else None,
    )


async def _kept_from(tx: Tx, days: int) -> Instant:
    """Returns the instant since which results are complete, in tables of `days` or in pieces."""
    packed_from = await select_packed_from(tx)
    return min(Instant(tx.now - days * DAY), LATEST if packed_from is None else packed_from)


async def _monitor(ask: Request, tx: Tx) -> MonitorRow:
    row = await select_monitor(tx, ask.ids["monitorID"])
    if row is None:
        raise Refused("not_found")
    return row


def _demand_range(from_text_: str | None, to_text_: str | None) -> tuple[Instant, Instant]:
    from_at, to_at = instant_if_given("from", from_text_), instant_if_given("to", to_text_)
    if from_at is None or to_at is None:
        raise Problem("range_required")
    if to_at <= from_at:
        raise Problem("range_invalid")
    return from_at, to_at


def _step_for(range_us: int) -> Literal["minute", "hour", "day"]:
    if range_us // MINUTE <= POINTS_MOST:
        return "minute"
    return "hour" if range_us // HOUR <= POINTS_MOST else "day"


_VIEW: Final = Permission(Need.VIEWER)
_MONITOR: Final = ("monitor", "monitorID")

ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/heartbeats",
        action=_VIEW,
        scope=_MONITOR,
        handler=heartbeats,
        summary="The results, newest first; at most 1 000 in a page.",
        tag="results",
        query=HeartbeatsQuery,
        answer=list[Heartbeat],
        short=True,
    ),
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/latency",
        action=_VIEW,
        scope=_MONITOR,
        handler=latency,
        summary="Latency of good results by step and of the range; at most 500 points.",
        tag="results",
        query=LatencyQuery,
        answer=Latency,
    ),
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/availability",
        action=_VIEW,
        scope=_MONITOR,
        handler=availability,
        summary="Availability by day in UTC, oldest first.",
        tag="results",
        query=DaysQuery,
        answer=list[DailyAvailability],
    ),
    Route(
        method="GET",
        path="/api/v1/projects/{projectID}/monitors/{monitorID}/expected-runs",
        action=_VIEW,
        scope=_MONITOR,
        handler=expected_runs,
        summary="List the due runs with their verdicts, newest first.",
        tag="results",
        query=RunsQuery,
        answer=ExpectedRuns,
    ),
)
