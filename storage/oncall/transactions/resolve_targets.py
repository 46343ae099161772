"""Whom a step of a ladder reaches at an instant: channels it names, and who is on call then."""

from collections.abc import Sequence

from ...core.instant import Instant
from ...engine.pools import Tx
from ..queries.oncall_schedules import select_channels_on_call
from ..rules.escalation import EscalationTarget, TargetKind


async def channels_of_step(
    tx: Tx, org: int, targets: Sequence[EscalationTarget], now: Instant
) -> list[int]:
    """The keys of channels, each once, in the order in which the step names them."""
    wanted = {target.key for target in targets if target.kind is TargetKind.SCHEDULE}
    holding = await select_channels_on_call(tx, org, wanted, now)
    found: dict[int, None] = {}
    for target in targets:
        if target.kind is TargetKind.CHANNEL:
            found[target.key] = None
        elif target.key in holding:
            found[holding[target.key]] = None
    return list(found)
