"""JSON bodies of escalation policies, on-call schedules and overrides.

A write contains the whole document.
"""

from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ..wire.schema import InstantText, Name, RequestSchema, Schema

TargetType = Literal["channel", "schedule", "person", "policy"]


class EscalationTarget(Schema, frozen=True, kw_only=True):
    type: TargetType
    id: str


class EscalationStep(Schema, frozen=True, kw_only=True):
    """`after_seconds` counts from the start of the incident."""

    after_seconds: int
    targets: list[EscalationTarget]


class EscalationPolicy(Schema, frozen=True, kw_only=True):
    id: UUID
    project_id: UUID
    name: str
    repeat_last: bool
    ack_timeout_seconds: int
    steps: list[EscalationStep]
    created_at: InstantText
    updated_at: InstantText


class DefaultEscalationPolicy(Schema, frozen=True, kw_only=True):
    """Policy of incidents about Leadline in the project, null for none.

    Without one, the only policy of the project starts.
    """

    escalation_policy_id: UUID | None


class PutDefaultEscalationPolicy(RequestSchema, frozen=True, kw_only=True):
    escalation_policy_id: UUID | None


class EscalationTargetRequest(RequestSchema, frozen=True, kw_only=True):
    """`id` is that of a channel, a schedule, a member or another policy of the project."""

    type: TargetType
    id: str


class EscalationStepRequest(RequestSchema, frozen=True, kw_only=True):
    """Step of an escalation policy, with 1 to 20 targets.

    `after_seconds` is 0 to 604800 after the start of the incident, and at least that of the
    previous step.
    """

    after_seconds: int
    targets: list[EscalationTargetRequest]


class CreateEscalationPolicy(RequestSchema, frozen=True, kw_only=True):
    """Policy of 1 to 20 steps. `repeat_last` repeats the last step until an acknowledgement.

    An acknowledgement expires after `ack_timeout_seconds` (300 to 604800), 0 for never.
    """

    name: Name
    repeat_last: bool = False
    ack_timeout_seconds: int = 0
    steps: list[EscalationStepRequest]


class OnCallSchedule(Schema, frozen=True, kw_only=True):
    """`timezone` is absent if shifts count elapsed time."""

    id: UUID
    project_id: UUID
    name: str
    shift_seconds: int
    anchor_at: InstantText
    timezone: str | UnsetType = UNSET
    participants: list[str]
    created_at: InstantText
    updated_at: InstantText


class CreateOnCallSchedule(RequestSchema, frozen=True, kw_only=True):
    """On-call schedule.

    `participants` are 1 to 100 channels or members of the project (the id of the user), in rotation
    order from `anchor_at`. With an IANA `timezone`, hand-offs keep their local time.
    """

    name: Name
    shift_seconds: int
    anchor_at: InstantText
    timezone: str = ""
    participants: list[str]


class OnCallNow(Schema, frozen=True, kw_only=True):
    """Channel or person on call with the end of the shift, and the override that selected it.

    For a person, `channel_id` is the id of the user and `channel_name` the name.
    """

    schedule_id: UUID
    channel_id: UUID
    channel_name: str
    until: InstantText
    override_id: UUID | UnsetType = UNSET


class OnCallOverride(Schema, frozen=True, kw_only=True):
    id: UUID
    schedule_id: UUID
    channel_id: UUID
    starts_at: InstantText
    ends_at: InstantText
    created_at: InstantText


class CreateOnCallOverride(RequestSchema, frozen=True, kw_only=True):
    """Overrides can overlap. The newest has precedence. `channel_id` can be that of a member."""

    channel_id: str
    starts_at: InstantText
    ends_at: InstantText


class CalendarQuery(msgspec.Struct, frozen=True):
    """Calendar software sends no credential. The token of the schedule opens its calendar."""

    token: str | None = None


class CalendarToken(Schema, frozen=True, kw_only=True):
    """Token, returned once. It grants read access to the calendar of one schedule."""

    token: str
    url: str
