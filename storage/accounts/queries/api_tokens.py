"""Reads of API tokens."""

from ...engine.pools import Tx
from ..rows import TokenRow
from ..tables.api_tokens import _COLUMNS, _FROM, _IS_VALID

_OF_ORG = f"select {_COLUMNS} {_FROM} where t.org = %(org)s and {_IS_VALID} order by t.id"


async def select_tokens_of(tx: Tx, org: int) -> list[TokenRow]:
    return await tx.structs(TokenRow, _OF_ORG, org=org, now=tx.now)
