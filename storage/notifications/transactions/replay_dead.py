"""Global admins send on its way again what was given up: one event, or all there are."""

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
    """`last` is where the next batch begins, None after the last; `busy` are those to replay one by
    one, as somebody held them."""

    replayed: int
    busy: tuple[UUID, ...]
    last: int | None


async def replay_dead(tx: Tx, principal: Principal, event: UUID) -> None:
    """Refused forbidden, and not_found where it is not dead."""
    demand(principal, REPLAY, None)
    found = await dead_letters.select_dead(tx, event)
    if found is None or not await dead_letters.replay(tx, [found], wait=True):
        raise Refused(NOT_FOUND)
    await audit(tx, principal, found.org, "outbox.replay", f"outbox_event:{event}")


async def replay_batch(tx: Tx, principal: Principal, after: int) -> Batch:
    """The next of all that are dead, `after` 0 for the first. Refused forbidden."""
    demand(principal, REPLAY, None)
    found = await dead_letters.select_dead_after(tx, after)
    replayed = await dead_letters.replay(tx, found, wait=False) if found else set()
    busy = tuple(item.uid for item in found if item.uid not in replayed)
    await audit(tx, principal, INSTANCE, "outbox.replay_all", f"outbox events={len(replayed)}")
    return Batch(len(replayed), busy, found[-1].id if len(found) == BATCH_MOST else None)
