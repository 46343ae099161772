"""JSON bodies of dead letters."""

from typing import Any, Literal
from uuid import UUID

from msgspec import UNSET, UnsetType

from ...wire.schema import InstantText, Schema


class OutboxEvent(Schema, frozen=True, kw_only=True):
    """Event for one destination.

    `payload` is the webhook body, or the input of the notification text of a channel. A request to
    confirm a subscription has no topic.
    """

    id: UUID
    topic: Literal["incident_event", "monitor_transition"] | UnsetType = UNSET
    status: Literal["pending", "delivered", "dead"]
    attempts: int
    last_error: str | UnsetType = UNSET
    payload: dict[str, Any]
    created_at: InstantText
    updated_at: InstantText


class Replayed(Schema, frozen=True, kw_only=True):
    replayed: int
