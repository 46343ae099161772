"""Runs of the job behind a push monitor."""

from typing import Final

from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.monitors.queries.monitors import select_monitor
from ....storage.results.queries.push_runs import PushRunRow, select_push_runs
from ....storage.results.rules.push_run import RUNS_KEPT, RunJudgement
from ...wire.route import Request, Route
from ...wire.schema import known
from ..schemas.push import PushRun


async def push_runs(ask: Request) -> list[PushRun]:
    async with ask.context.pool.transaction("push_runs", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        found = await select_push_runs(tx, row.key, RUNS_KEPT)
    return [_run(item) for item in found]


def _run(item: PushRunRow) -> PushRun:
    # A run without a limit keeps none.
    judged = item.judged if item.deadline_at is not None else None
    return PushRun(
        run_id=item.run or UNSET,
        started_at=to_text(item.started_at),
        deadline_at=to_text(item.deadline_at) if item.deadline_at is not None else UNSET,
        ended_at=to_text(item.ended_at) if item.ended_at is not None else UNSET,
        duration_ms=known(item.duration_ms),
        outcome=known(item.outcome),  # type: ignore[arg-type]
        exit_status=known(item.code),
        limit=known("kept" if judged == RunJudgement.ENDED else judged),  # type: ignore[arg-type]
    )


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
)
