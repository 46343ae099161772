"""Search for canary windows that were refused a run: one bounded failure each.

Invariant: a window is judged by the state when its claim period ends, or not at all. Later states
do not count: a restarted scheduler or a stopped worker refuses no windows.
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
# By then a claim made at the last moment is committed.
SETTLED_AFTER_US: Final = SECOND
# A later check judges no windows, because the current state can differ from the state then.
JUDGED_WITHIN_US: Final = 30 * SECOND


class Refusals(msgspec.Struct, frozen=True):
    """Refused windows. All windows whose claim period ended by `through` are judged."""

    arrivals: list[IncomingResult]
    through: Instant


async def find_refused(tx: Tx, places: int, judged_through: Instant) -> Refusals:
    """Returns refusals among the windows that were not judged before.

    The sealer marks the other windows as missed. Repeating the call is harmless: each result
    answers its window.
    """
    through = Instant(tx.now - SETTLED_AFTER_US)
    after = max(judged_through, Instant(tx.now - JUDGED_WITHIN_US))
    found = await select_unclaimed(tx, after, through, AT_ONCE)
    if len(found) == AT_ONCE:
        # Other windows may have ended at the same instant as the last one. Windows that are
        # returned now are settled and not found again.
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
