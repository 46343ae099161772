"""Resolution of a step's targets: its channels, and the channels on call by its schedules."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..queries.oncall_schedules import select_channels_on_call
from ..rules.escalation import EscalationTarget, TargetKind


async def channels_of_step(
    tx: Tx, org: int, targets: Sequence[EscalationTarget], now: Instant
) -> list[int]:
    """Returns the ids of the channels without duplicates, in the order of the targets."""
    wanted = {target.key for target in targets if target.kind is TargetKind.SCHEDULE}
    holding = await select_channels_on_call(tx, org, wanted, now)
    found: dict[int, None] = {}
    for target in targets:
        if target.kind is TargetKind.CHANNEL:
            found[target.key] = None
        elif target.kind is TargetKind.SCHEDULE and target.key in holding:
            found[holding[target.key]] = None
    return list(found)
