"""Connections of pools that outlive their test, so that the next one meets warm caches.

In a short test PostgreSQL spends most of its time on the catalog caches and plans of new
connections. A pool that is closed leaves its idle connections here, and the next pool of the same
name on the same database takes them. Only lent databases have warm connections (`databases.py`).
"""

from collections import defaultdict
from typing import Any, Final

import pytest

from leadline.storage.engine import pools
from leadline.storage.engine.connect import connect
from leadline.storage.engine.trio_postgres import Connection

# psycopg's default. A pool behind a pooler sets another one.
PREPARE_THRESHOLD: Final = 5
# More connections cost memory of the server, and few tests open more.
_MOST: Final = 8


class WarmConnections:
    """Idle connections, by database and name of the pool."""

    def __init__(self) -> None:
        self._idle: dict[str, list[tuple[str, Connection]] | None] = defaultdict(lambda: None)

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Makes all pools of this process take and leave connections here."""
        close = pools.Pool._close

        def leave(pool: pools.Pool) -> None:
            while pool._idle and self._keep(pool._dsn, f"leadline {pool.name}", pool._idle[-1]):
                pool._idle.pop()
            close(pool)

        patch.setattr(pools, "connect", self._take)
        patch.setattr(pools.Pool, "_close", leave)

    def allow(self, dsn: str) -> None:
        """Keeps the connections to this database from now on."""
        if self._idle[dsn] is None:
            self._idle[dsn] = []

    def backends(self, dsn: str) -> list[int]:
        """Returns the process ids of the server for the idle connections."""
        return [connection.info.backend_pid for _, connection in self._idle[dsn] or ()]

    def end(self, dsn: str) -> None:
        """Closes the idle connections, outside a Trio run."""
        for _, connection in self._idle.pop(dsn, None) or ():
            connection.pgconn.finish()

    async def _take(self, dsn: str, *, name: str = "leadline", **arguments: Any) -> Connection:
        idle = self._idle[dsn] or []
        for number, (called, connection) in reversed(list(enumerate(idle))):
            if called == name:
                del idle[number]
                if connection.usable:
                    connection.prepare_threshold = PREPARE_THRESHOLD
                    return connection
                connection.discard()
        return await connect(dsn, name=name, **arguments)

    def _keep(self, dsn: str, name: str, lent: pools._Lent) -> bool:
        idle = self._idle[dsn]
        if idle is None or len(idle) >= _MOST or not lent.connection.usable:
            return False
        idle.append((name, lent.connection))
        return True
