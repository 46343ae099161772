"""Routes of dead letters for global admins: list and replay."""

from typing import Any, Final

import msgspec

from ....storage.core.instant import to_text
from ....storage.core.refusal import Refused
from ....storage.notifications.queries.dead_letter_list import DeadEvent, select_dead_events
from ....storage.notifications.rules.notification import Topic
from ....storage.notifications.transactions.replay_dead import REPLAY, replay_batch, replay_dead
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ..schemas.outbox import OutboxEvent, Replayed

_DEAD: Final = "/api/v1/admin/outbox/dead"


class DeadQuery(msgspec.Struct, frozen=True):
    """`limit` is capped at 500."""

    limit: int = 100


def _event_json(row: DeadEvent) -> OutboxEvent:
    payload: Any = msgspec.json.decode(row.payload)
    return msgspec.convert(
        {
            "id": row.uid,
            **({} if row.topic == Topic.SUBSCRIPTION else {"topic": row.topic}),
            "status": row.status,
            "attempts": row.attempts,
            **({"last_error": row.last_error} if row.last_error else {}),
            # A payload that is not an object was not written by Leadline. It is returned unchanged.
            "payload": payload if isinstance(payload, dict) else {"": payload},
            "created_at": to_text(row.created_at),
            "updated_at": to_text(row.updated_at),
        },
        OutboxEvent,
    )


async def list_dead(ask: Request) -> list[OutboxEvent]:
    if ask.query.limit < 1:
        raise Problem("limit_invalid")
    async with ask.context.pool.transaction("list_dead_letters", read_only=True) as tx:
        return [_event_json(row) for row in await select_dead_events(tx, ask.query.limit)]


async def replay(ask: Request) -> None:
    event = ask.ids["eventID"]
    await ask.context.pool.transact("replay_dead", lambda tx: replay_dead(tx, ask.who, event))
    ask.context.on_told()


async def replay_all(ask: Request) -> Replayed:
    """Replays all dead events in batches, one transaction each, then the locked ones singly."""
    pool, replayed = ask.context.pool, 0
    busy: list[Any] = []
    last: int | None = 0
    while last is not None:
        after = last
        batch = await pool.transact("replay_all", lambda tx: replay_batch(tx, ask.who, after))  # noqa: B023
        replayed, last = replayed + batch.replayed, batch.last
        busy += batch.busy
    for event in busy:
        try:
            await pool.transact("replay_dead", lambda tx: replay_dead(tx, ask.who, event))  # noqa: B023
        except Refused as refused:
            # The event was delivered, or another request replayed it.
            if refused.code != "not_found":
                raise
        else:
            replayed += 1
    ask.context.on_told()
    return Replayed(replayed=replayed)


ROUTES: Final = (
    Route(
        method="GET",
        path=_DEAD,
        action=REPLAY,
        handler=list_dead,
        summary="List failed deliveries, newest first; at most 500.",
        tag="outbox",
        query=DeadQuery,
        answer=list[OutboxEvent],
    ),
    Route(
        method="POST",
        path=f"{_DEAD}/replay-all",
        action=REPLAY,
        handler=replay_all,
        summary="Retry all failed deliveries.",
        tag="outbox",
        answer=Replayed,
    ),
    Route(
        method="POST",
        path=f"{_DEAD}/{{eventID}}/replay",
        action=REPLAY,
        handler=replay,
        summary="Retry a failed delivery.",
        tag="outbox",
        status=204,
    ),
)
