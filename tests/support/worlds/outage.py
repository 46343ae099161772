"""Outages of a real PostgreSQL as clients see them: connections end, and new ones are refused."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import psycopg
import trio
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

_HANGS_SECONDS = 30


@dataclass
class Outage:
    """Controls one database over a connection to another database of its server."""

    server: psycopg.Connection
    database: str

    def end_connections(self, where: str = "true") -> int:
        """Ends connections, like a server that stops; returns their number."""
        query = (
            "select count(pg_terminate_backend(pid, 5000)) from pg_stat_activity"
            f" where datname = %s and {where}"
        )
        row = self.server.execute(query, [self.database]).fetchone()
        assert row is not None
        return int(row[0])

    def begin(self) -> None:
        self._allow(False)
        self.end_connections()

    def end(self) -> None:
        self._allow(True)

    def _allow(self, allowed: bool) -> None:
        self.server.execute(
            sql.SQL("alter database {} with allow_connections {}").format(
                sql.Identifier(self.database), sql.Literal(allowed)
            )
        )

    async def until_waiting(self, where: str = "wait_event_type = 'Lock'") -> None:
        """Waits until a connection to the database waits for a lock."""
        query = f"select count(*) from pg_stat_activity where datname = %s and {where}"
        with trio.fail_after(_HANGS_SECONDS):
            while True:
                row = self.server.execute(query, [self.database]).fetchone()
                if row and row[0]:
                    return
                await trio.sleep(0.005)


@asynccontextmanager
async def outage_of(dsn: str, server_dsn: str) -> AsyncIterator[Outage]:
    """Controls the database of `dsn`; it accepts connections again afterwards."""
    with psycopg.connect(server_dsn, autocommit=True) as server:
        outage = Outage(server, str(conninfo_to_dict(dsn)["dbname"]))
        try:
            yield outage
        finally:
            outage.end()
