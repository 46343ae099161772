"""Reads of open invitations."""

from typing import Final

from ...engine.pools import Tx
from ..rows import InvitationRow
from ..tables.invitations import _COLUMNS, _FROM, _IS_OPEN
from ..tables.invitations import select_by_token as _select_by_token

_OF_ORG: Final = (
    f"select {_COLUMNS} {_FROM} where i.org = %(org)s and {_IS_OPEN} order by lower(i.email), i.id"
)


async def select_invitations_of(tx: Tx, org: int) -> list[InvitationRow]:
    return await tx.structs(InvitationRow, _OF_ORG, org=org, now=tx.now)


async def select_invitation_by_token(tx: Tx, token_hash: bytes) -> InvitationRow | None:
    """Returns the open invitation of a link."""
    return await _select_by_token(tx, token_hash)
