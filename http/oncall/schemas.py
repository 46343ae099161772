"""Bodies of ladders, schedules and overrides. A write gives the whole document."""

from typing import Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from ..wire.schema import InstantText, Name, RequestSchema, Schema

TargetType = Literal["channel", "schedule"]


class EscalationTarget(Schema, frozen=True, kw_only=True):
    type: TargetType
    id: str


class EscalationStep(Schema, frozen=True, kw_only=True):
    """`after_seconds` counts from the incident's beginning."""

    after_seconds: int
    targets: list[EscalationTarget]


class EscalationPolicy(Schema, frozen=True, kw_only=True):
    id: UUID
    project_id: UUID
    name: str
    repeat_last: bool
    steps: list[EscalationStep]
    created_at: InstantText
    updated_at: InstantText


class EscalationTargetRequest(RequestSchema, frozen=True, kw_only=True):
    """`id` is that of a channel or of an on-call schedule of the project."""

    type: TargetType
    id: str


class EscalationStepRequest(RequestSchema, frozen=True, kw_only=True):
    """0 to 604800 seconds after the incident's beginning, and not before the step before; 1 to 20
    targets."""

    after_seconds: int
    targets: list[EscalationTargetRequest]


class CreateEscalationPolicy(RequestSchema, frozen=True, kw_only=True):
    """1 to 20 steps. With `repeat_last` the last one is repeated until somebody acknowledges."""

    name: Name
    repeat_last: bool = False
    steps: list[EscalationStepRequest]


class OnCallSchedule(Schema, frozen=True, kw_only=True):
    """`timezone` is left out where shifts count elapsed time."""

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
    """`participants` are 1 to 100 channels of the project, in the order in which they take turns
    from `anchor_at`. With an IANA `timezone` hand-offs keep their local time."""

    name: Name
    shift_seconds: int
    anchor_at: InstantText
    timezone: str = ""
    participants: list[str]


class OnCallNow(Schema, frozen=True, kw_only=True):
    """Who is on call until when, and by which override."""

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
    """They may overlap; the newest wins."""

    channel_id: str
    starts_at: InstantText
    ends_at: InstantText


class CalendarQuery(msgspec.Struct, frozen=True):
    """Calendar software sends no credential: the schedule's own token opens its calendar."""

    token: str | None = None


class CalendarToken(Schema, frozen=True, kw_only=True):
    """Shown once; whoever has it may read this schedule's calendar and nothing else."""

    token: str
    url: str
