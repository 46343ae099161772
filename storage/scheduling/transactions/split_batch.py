"""A run batch in two: what is handed out of it, and what is left."""

from collections.abc import Collection, Sequence

from ..rows import OpenBatch


def split_batch(item: OpenBatch, positions: Collection[int]) -> tuple[OpenBatch, OpenBatch | None]:
    """The windows at these positions, of which there is one at least, and what is left if any."""
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
