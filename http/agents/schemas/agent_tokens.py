"""Bodies of agents' tokens."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...wire.schema import InstantText, Name, RequestSchema, Schema

RegionText = Annotated[str, Meta(min_length=1, max_length=63)]


class AgentToken(Schema, frozen=True, kw_only=True):
    """An agent token. `revoked_at` is present if it was revoked."""

    id: UUID
    name: str
    region: str
    created_at: InstantText
    revoked_at: InstantText | UnsetType = UNSET


class CreateAgentToken(RequestSchema, frozen=True, kw_only=True):
    """Request for an agent token. `region` is the region of its agents."""

    name: Name
    region: RegionText


class CreatedAgentToken(Schema, frozen=True, kw_only=True):
    """A new agent token. `token` is shown only once."""

    id: UUID
    name: str
    region: str
    token: str

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id})"
