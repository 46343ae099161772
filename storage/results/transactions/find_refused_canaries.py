"""Which windows of canaries were refused a run: arrivals that tell it, one bounded failure each.

It keeps true: a window is judged by what stands when its claiming ends, or not at all. What stands
later says nothing of it: a scheduler that comes back, or a worker that went since, refuses nothing.
"""

from typing import Final

import msgspec

from ...core.instant import SECOND, Instant
from ...engine.pools import Tx
from ...scheduling.queries.unclaimed_canaries import select_standing, select_unclaimed
from ...scheduling.rules.canary_refusal import refusal
from ...scheduling.rules.run_schedule import LATE_ARRIVAL_US
from ...scheduling.tables import canary_runs
from ..rules.incoming_result import IncomingResult

AT_ONCE: Final = 200
# A claim that was made in the last moment is committed by then.
SETTLED_AFTER_US: Final = SECOND
# Who judges later than this judges nothing: what stands now did not stand then.
JUDGED_WITHIN_US: Final = 30 * SECOND


class Refusals(msgspec.Struct, frozen=True):
    """All windows whose claiming had ended by `through` are judged."""

    arrivals: list[IncomingResult]
    through: Instant


async def find_refused(tx: Tx, places: int, judged_through: Instant) -> Refusals:
    """Of the windows that were not judged before. What is not told here was missed, and the sealer
    says so. Telling it twice changes nothing: each answers its window."""
    through = Instant(tx.now - SETTLED_AFTER_US)
    after = max(judged_through, Instant(tx.now - JUDGED_WITHIN_US))
    found = await select_unclaimed(tx, after, through, AT_ONCE)
    if len(found) == AT_ONCE:
        # Others may have ended with the last one. Those that are told now are not found again.
        through = max(after, Instant(found[-1].claim_until - 1))
    regions = sorted({window.region for window in found})
    await canary_runs.release_slots(tx, regions)
    standing = {region: await select_standing(tx, region) for region in regions}
    refused = []
    for window in found:
        reason = refusal(standing[window.region].ground_of(window, places))
        if reason is not None:
            refused.append(
                IncomingResult(
                    org=window.org,
                    monitor=window.monitor,
                    shard=window.shard,
                    ts=tx.now,
                    up=False,
                    msg=reason.value,
                    dues=(window.due,),
                    windowed=True,
                    reach_us=window.timeout_seconds * SECOND + LATE_ARRIVAL_US,
                    withheld=reason.value,
                )
            )
    return Refusals(refused, max(judged_through, through))
