"""Runs of the job behind a push monitor, and the newest bodies that it sent."""

from typing import Final

from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.results.queries.push_bodies import select_push_bodies
from ....storage.results.queries.push_runs import PushRunRow, select_push_runs
from ....storage.results.rows import PushBodyRow
from ....storage.results.rules.push_run import RUNS_KEPT, RunJudgement, RunOutcome
from ....storage.results.transactions.push_bodies import open_body
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas.push import PushBody, PushRun


async def push_runs(ask: Request) -> list[PushRun]:
    async with ask.context.pool.transaction("push_runs", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        found = await select_push_runs(tx, row.key, RUNS_KEPT)
    return [_run(item) for item in found]


async def push_bodies(ask: Request) -> list[PushBody]:
    async with ask.context.pool.transaction("push_bodies", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        found = await select_push_bodies(tx, row.key)
    return [_body(item, open_body(item, ask.context.keyring)) for item in found]


def _body(item: PushBodyRow, text: str | None) -> PushBody:
    return PushBody(
        at=to_text(item.at),
        kind=item.kind,  # type: ignore[arg-type]
        up=known(item.up),
        run_id=item.run or UNSET,
        text=text,
        is_cut=item.is_cut,
    )


def _run(item: PushRunRow) -> PushRun:
    return PushRun(
        run_id=item.run or UNSET,
        started_at=to_text(item.started_at),
        deadline_at=to_text(item.deadline_at) if item.deadline_at is not None else UNSET,
        ended_at=to_text(item.ended_at) if item.ended_at is not None else UNSET,
        duration_ms=known(item.duration_ms),
        outcome=known(item.outcome),  # type: ignore[arg-type]
        exit_status=known(item.code),
        limit=known(_limit(item)),  # type: ignore[arg-type]
    )


def _limit(item: PushRunRow) -> str | None:
    """Returns whether the run kept its limit. It is not known of a run that was replaced."""
    if item.judged != RunJudgement.ENDED:
        return item.judged
    is_known = item.deadline_at is not None and item.outcome != RunOutcome.REPLACED
    return "kept" if is_known else None


ROUTES: Final = (
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/push-runs",
        action=Permission(Need.VIEWER),
        scope=("monitor", "monitorID"),
        handler=push_runs,
        summary="The runs of a push monitor, newest first; at most 100.",
        tag="results",
        answer=list[PushRun],
    ),
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}/push-bodies",
        action=Permission(Need.EDITOR),
        scope=("monitor", "monitorID"),
        handler=push_bodies,
        summary="The newest 20 bodies of a push monitor that keeps them, newest first.",
        tag="results",
        answer=list[PushBody],
    ),
)
