"""Row structs of agents that other features or layers use, and their constants."""

from typing import Final
from uuid import UUID

import msgspec

from ..core.instant import Instant


class AgentTokenRow(msgspec.Struct, frozen=True):
    """Token of an agent. `revoked_at` is None while the token is valid."""

    uid: UUID
    name: str
    region: str
    created_at: Instant
    revoked_at: Instant | None


# Instance id of agents that send none.
NOBODY: Final = UUID(int=0)


class AgentRow(msgspec.Struct, frozen=True):
    """Agent. `carrier` and `workflow_kinds` are those of its last heartbeat."""

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
