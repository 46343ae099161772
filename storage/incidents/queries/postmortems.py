"""Reads of postmortems."""

from ...engine.pools import Tx
from ..rows import PostmortemRow
from ..tables.postmortems import _COLUMNS

_OF = f"select {_COLUMNS} from postmortems where org = %(org)s and incident = %(incident)s"


async def select_postmortem(tx: Tx, org: int, incident: int) -> PostmortemRow | None:
    return await tx.one(PostmortemRow, _OF, org=org, incident=incident)
