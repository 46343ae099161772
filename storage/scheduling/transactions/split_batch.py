"""Split of a run batch into the claimed windows and the rest."""

from collections.abc import Collection, Sequence

from ..rows import OpenBatch


def split_batch(item: OpenBatch, positions: Collection[int]) -> tuple[OpenBatch, OpenBatch | None]:
    """Returns the windows at `positions` (at least one) and the remaining batch, if any."""
    inside = frozenset(positions)
    rest = [n for n in range(len(item.due_ats)) if n not in inside]
    return _of(item, sorted(inside)), _of(item, rest) if rest else None


def _of(item: OpenBatch, positions: Sequence[int]) -> OpenBatch:
    return OpenBatch(
        item.id,
        item.shard,
        [item.orgs[n] for n in positions],
        [item.monitors[n] for n in positions],
        [item.due_ats[n] for n in positions],
        [item.seal_ats[n] for n in positions],
        [item.claim_untils[n] for n in positions],
    )
