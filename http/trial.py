"""A check before it is saved: run once, from this process, and stored nowhere."""

from ..probes.check import make_check
from ..probes.result import Result
from ..probes.run import run
from ..storage.transactions.monitors.draft import MonitorDraft, check_draft
from .context import Context


async def try_out(context: Context, draft: MonitorDraft) -> Result:
    """Refused where the draft may not be; waits for one of the permits that tests have."""
    check_draft(draft, context.options.regions)
    check = make_check(
        draft.type,
        draft.target,
        draft.method,
        draft.config,
        draft.conditions,
        retries=draft.retries,
        timeout_seconds=draft.timeout_seconds,
        interval_seconds=draft.interval_seconds,
    )
    async with context.test_permits:
        return await run(check, context.reach, context.clock)
