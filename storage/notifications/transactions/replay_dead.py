"""Replay of dead letters by global admins: one event, or all."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ...accounts.rows import INSTANCE
from ...accounts.rules.access import Need, Permission, Principal
from ...accounts.transactions.authorize import NOT_FOUND, audit, demand
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..tables import dead_letters
from ..tables.dead_letters import BATCH_MOST

REPLAY: Final = Permission(Need.GLOBAL_ADMIN)


@dataclass(frozen=True, slots=True)
class Batch:
    """Result of a batch.

    `last` is the start of the next batch, None after the last. `busy` are locked events, to be
    replayed one by one.
    """

    replayed: int
    busy: tuple[UUID, ...]
    last: int | None


async def replay_dead(tx: Tx, principal: Principal, event: UUID) -> None:
    """Replays one dead letter. Raises: Refused forbidden, or not_found if it is not dead."""
    demand(principal, REPLAY, None)
    found = await dead_letters.select_dead(tx, event)
    if found is None or not await dead_letters.replay(tx, [found], wait=True):
        raise Refused(NOT_FOUND)
    await audit(tx, principal, found.org, "outbox.replay", f"outbox_event:{event}")


async def replay_batch(tx: Tx, principal: Principal, after: int) -> Batch:
    """Replays the next batch of dead letters, `after` 0 for the first.

    Raises: Refused forbidden.
    """
    demand(principal, REPLAY, None)
    found = await dead_letters.select_dead_after(tx, after)
    replayed = await dead_letters.replay(tx, found, wait=False) if found else set()
    busy = tuple(item.uid for item in found if item.uid not in replayed)
    await audit(tx, principal, INSTANCE, "outbox.replay_all", f"outbox events={len(replayed)}")
    return Batch(len(replayed), busy, found[-1].id if len(found) == BATCH_MOST else None)
