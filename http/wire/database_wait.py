"""Time limits of requests that wait for the database.

Every request waits up to `CONNECTION_SECONDS` for a connection of the pool. A push repeats its
transaction within that time too, so that no push is lost in a failover of a few seconds. If a
failure lasts longer, the request pipeline answers 500 `internal_error`.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import trio

from ...storage.core.refusal import Unavailable
from ...storage.engine.pools import ACQUIRE_SECONDS

T = TypeVar("T")

CONNECTION_SECONDS: Final = ACQUIRE_SECONDS
PUSH_SECONDS: Final = CONNECTION_SECONDS
# Between two tries. The pool itself waits for a server that does not answer.
_PAUSE_SECONDS: Final = 0.1


async def outlast(work: Callable[[], Awaitable[T]], *, until: float) -> T:
    """Repeats `work` after each failure of the database, up to a Trio instant.

    `work` must be idempotent: a try whose connection broke may have been committed.
    Raises: Unavailable, the last one, when the time is over.
    """
    cause = Unavailable("the database did not answer in time")
    with trio.move_on_at(until):
        while True:
            try:
                return await work()
            except Unavailable as error:
                cause = error
            await trio.sleep(_PAUSE_SECONDS)
    raise cause
