"""Row structs of agents that other features or layers use, and their constants."""

from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import Instant


class AgentTokenRow(msgspec.Struct, frozen=True):
    """`revoked_at` is None for as long as it opens anything."""

    uid: UUID
    name: str
    region: str
    created_at: Instant
    revoked_at: Instant | None


# Of those that do not say who they are.
NOBODY: Final = UUID(int=0)


class AgentRow(msgspec.Struct, frozen=True):
    """`carrier` and `workflow_kinds` are what its last heartbeat declared."""

    credential: str
    region: str
    instance: UUID
    name: str
    version: str
    workflow_kinds: list[str]
    carrier: int
    holder: UUID
    first_seen_at: Instant
    last_seen_at: Instant
