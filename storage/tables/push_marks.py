"""What a push says beside its results: that a run began, or a line of its log."""

from ..pools import Tx

_INSERT = """
insert into push_marks (org, monitor, at, kind, msg)
values (%(org)s, %(monitor)s, at(%(now)s), %(kind)s, %(msg)s)
on conflict do nothing
"""


async def insert_mark(tx: Tx, org: int, monitor: int, kind: str, msg: str) -> bool:
    """False where the very microsecond is taken."""
    return bool(await tx.execute(_INSERT, org=org, monitor=monitor, kind=kind, msg=msg, now=tx.now))
