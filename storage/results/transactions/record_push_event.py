"""Recording of marks, and of starts and ends of push runs."""

from ...core.instant import Instant
from ...engine.pools import Tx
from ..queries.push_targets import PushTarget
from ..rules.push_request import Push, PushKind
from ..rules.push_run import RunOutcome, run_deadline
from ..tables import push_events, push_runs


async def record_mark(tx: Tx, target: PushTarget, said: Push, at: Instant) -> bool:
    """Records a mark. Returns False if it starts a run that cannot be tracked.

    Idempotent on retry, because the keys contain the instant of receipt.
    """
    await push_events.insert_push_event(tx, target.org, target.monitor, said.mark, said.message, at)
    if said.mark is not PushKind.START:
        return True
    deadline = run_deadline(at, target.max_run_seconds)
    return await push_runs.start_run(tx, target.org, target.monitor, said.run, at, deadline)


async def end_run(tx: Tx, target: PushTarget, said: Push, at: Instant) -> int | None:
    """Ends the run of a result. Returns its duration in microseconds, None without a run."""
    outcome = RunOutcome.SUCCEEDED if said.up else RunOutcome.FAILED
    found = await push_runs.end_run(
        tx, target.org, target.monitor, said.run, at, outcome, said.code
    )
    return found[1] - found[0] if found else None
