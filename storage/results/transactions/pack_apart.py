"""Packing of monitors one by one, if they cannot be packed together.

The monitors that cannot be packed are found by halving. Such a monitor has a piece for each row,
which needs about 600 bytes for a result and depends on nothing but its values. So its rows stay
exact and readable, and the other monitors are not delayed.
"""

from collections.abc import Sequence

from ...core.key import MonitorKey
from ...core.time_span import TimeSpan
from ...engine.pools import Rejected, Tx
from ..tables import packing, packing_failures
from ..tables.packed_results import merge_pieces, pack_results
from .store_late_results import ONE_ROW

Causes = dict[MonitorKey, str]


async def pack_apart(tx: Tx, keys: Sequence[MonitorKey], day: TimeSpan) -> tuple[int, Causes]:
    """Packs a day of some monitors, and returns the number of rows and the recorded failures.

    Raises Rejected if the rows of a monitor cannot be packed in any form.
    """
    try:
        async with tx.savepoint():
            return await pack_results(tx, keys, day), {}
    except Rejected as error:
        if len(keys) == 1:
            cause = str(error)
            rows = await _pack_alone(tx, keys[0], day)
            await packing_failures.insert_failure(tx, keys[0], day.from_, cause)
            return rows, {keys[0]: cause}
    half = len(keys) // 2
    rows, causes = await pack_apart(tx, keys[:half], day)
    more, others = await pack_apart(tx, keys[half:], day)
    return rows + more, causes | others


async def _pack_alone(tx: Tx, key: MonitorKey, day: TimeSpan) -> int:
    # The rows of the tables count until the day ends.
    await packing.delete_pieces(tx, key, day)
    try:
        async with tx.savepoint():
            return await pack_results(tx, [key], day)
    except Rejected:
        return await pack_results(tx, [key], day, ONE_ROW)


async def merge_apart(
    tx: Tx, packed: str, keys: Sequence[MonitorKey], week: TimeSpan
) -> tuple[int, Causes]:
    """Merges the pieces of a week in the table `packed`, and returns the same as `pack_apart`.

    The pieces of a monitor that cannot be merged stay as they are.
    """
    try:
        async with tx.savepoint():
            return await merge_pieces(tx, packed, keys, week), {}
    except Rejected as error:
        if len(keys) == 1:
            await packing_failures.insert_failure(tx, keys[0], week.from_, str(error))
            return 0, {keys[0]: str(error)}
    half = len(keys) // 2
    rows, causes = await merge_apart(tx, packed, keys[:half], week)
    more, others = await merge_apart(tx, packed, keys[half:], week)
    return rows + more, causes | others
