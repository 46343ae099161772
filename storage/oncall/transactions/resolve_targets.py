"""Whom a step of a ladder reaches at an instant: channels it names, and who is on call then."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..queries.oncall_schedules import select_rosters
from ..rules.escalation import EscalationTarget, TargetKind
from ..rules.oncall_schedule import stretch
from ..tables.oncall_schedules import select_schedules_by_keys


async def channels_of_step(
    tx: Tx, org: int, targets: Sequence[EscalationTarget], now: Instant
) -> list[int]:
    """The keys of channels, each once, in the order in which the step names them."""
    wanted = {target.key for target in targets if target.kind is TargetKind.SCHEDULE}
    holding = await _on_call(tx, org, wanted, now) if wanted else {}
    found: dict[int, None] = {}
    for target in targets:
        if target.kind is TargetKind.CHANNEL:
            found[target.key] = None
        elif target.key in holding:
            found[holding[target.key]] = None
    return list(found)


async def _on_call(tx: Tx, org: int, schedules: set[int], now: Instant) -> dict[int, int]:
    rows = await select_schedules_by_keys(tx, org, schedules)
    standings = await select_rosters(tx, org, rows, now, Instant(now + 1))
    return {
        one.schedule.id: stretch(one.roster, one.overrides, now).channel
        for one in standings
        # A schedule that went since it was read has nobody any more.
        if one.participants
    }
