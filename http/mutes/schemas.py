"""JSON bodies of mutes."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from ...storage.mutes.rules.label_matcher import TEXT_LONGEST
from ...storage.mutes.rules.mute import REASON_LONGEST, MuteState
from ..wire.schema import InstantText, RequestSchema, Schema

Reason = Annotated[str, Meta(min_length=1, max_length=REASON_LONGEST)]
Matchers = Annotated[str, Meta(max_length=TEXT_LONGEST)]


class Mute(Schema, frozen=True, kw_only=True):
    """Mute of a monitor, of a service, or of objects whose labels match `matchers`.

    It delays alerts and changes no figure. `muted_by` is the label of the user or token.
    """

    id: UUID
    project_id: UUID
    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    matchers: str | UnsetType = UNSET
    reason: str
    starts_at: InstantText
    ends_at: InstantText
    state: MuteState
    muted_by: str
    created_at: InstantText


class CreateMute(RequestSchema, frozen=True, kw_only=True):
    """Exactly one of `monitor_id`, `service_id` and `matchers`. Without `starts_at` it starts now.

    `matchers` has the syntax of Alertmanager. Monitors have the labels monitor, type, region and
    tag, services the label service, and external alerts their own.
    """

    monitor_id: UUID | UnsetType = UNSET
    service_id: UUID | UnsetType = UNSET
    matchers: Matchers | UnsetType = UNSET
    reason: Reason
    starts_at: InstantText | UnsetType = UNSET
    ends_at: InstantText


class PatchMute(RequestSchema, frozen=True, kw_only=True):
    reason: Reason | UnsetType = UNSET
    ends_at: InstantText | UnsetType = UNSET
