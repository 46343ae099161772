"""JSON bodies of escalation policies, on-call schedules and overrides.

A write contains the whole document.
"""

from typing import Annotated, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ..wire.schema import InstantText, Name, RequestSchema, Schema

TargetType = Literal["channel", "schedule", "person", "policy"]
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
ClockText = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$")]


class EscalationTarget(Schema, frozen=True, kw_only=True):
    type: TargetType
    id: str


class EscalationStep(Schema, frozen=True, kw_only=True):
    """`after_seconds` counts from the start of the incident."""

    after_seconds: int
    targets: list[EscalationTarget]


class EscalationPolicy(Schema, frozen=True, kw_only=True):
    """`managed_by` is the bundle provider. It is absent if users edit the policy."""

    id: UUID
    project_id: UUID
    name: str
    repeat_last: bool
    ack_timeout_seconds: int
    steps: list[EscalationStep]
    managed_by: str | UnsetType = UNSET
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


class WeeklyWindow(Schema, frozen=True, kw_only=True):
    """Window on each of `weekdays`, in local time. It ends on the next day if `to` is not later."""

    weekdays: list[Weekday]
    from_: str = msgspec.field(name="from")
    to: str


class WeeklyWindowRequest(RequestSchema, frozen=True, kw_only=True):
    """Window on each of `weekdays` (all without one), in local time, such as 09:00 to 17:00.

    It ends on the next day if `to` is not later than `from`. `to` can be 24:00.
    """

    weekdays: list[Weekday] = []
    from_: ClockText = msgspec.field(name="from")
    to: ClockText


class OnCallLayer(Schema, frozen=True, kw_only=True):
    """Further layer of a schedule. Fields are absent if they have no value."""

    name: str
    shift_seconds: int
    anchor_at: InstantText
    timezone: str | UnsetType = UNSET
    participants: list[str]
    restrictions: list[WeeklyWindow] | UnsetType = UNSET
    starts_at: InstantText | UnsetType = UNSET
    ends_at: InstantText | UnsetType = UNSET


class OnCallSchedule(Schema, frozen=True, kw_only=True):
    """`timezone` is absent if shifts count elapsed time.

    `restrictions`, `starts_at` and `ends_at` are those of the first layer. Of it and the further
    `layers`, the last active one takes precedence. `managed_by` is the bundle provider. It is
    absent if users edit the schedule.
    """

    id: UUID
    project_id: UUID
    name: str
    shift_seconds: int
    anchor_at: InstantText
    timezone: str | UnsetType = UNSET
    participants: list[str]
    restrictions: list[WeeklyWindow] | UnsetType = UNSET
    starts_at: InstantText | UnsetType = UNSET
    ends_at: InstantText | UnsetType = UNSET
    layers: list[OnCallLayer] | UnsetType = UNSET
    hand_off_email: bool | UnsetType = UNSET
    managed_by: str | UnsetType = UNSET
    created_at: InstantText
    updated_at: InstantText


class CreateOnCallLayer(RequestSchema, frozen=True, kw_only=True):
    """Layer with a rotation of its own.

    It is active from `starts_at` to `ends_at`, and only in the weekly hours of `restrictions` (at
    most 50) in its `timezone`.
    """

    name: Name
    shift_seconds: int
    anchor_at: InstantText
    timezone: str = ""
    participants: list[str]
    restrictions: list[WeeklyWindowRequest] = []
    starts_at: InstantText | None = None
    ends_at: InstantText | None = None


class CreateOnCallSchedule(RequestSchema, frozen=True, kw_only=True):
    """On-call schedule.

    `participants` are 1 to 100 channels or members of the project (the id of the user), in rotation
    order from `anchor_at`. With an IANA `timezone`, hand-offs keep their local time. At most 19
    further `layers` take precedence, the last one first. With `hand_off_email` a person who comes
    on call gets a summary by e-mail.
    """

    name: Name
    shift_seconds: int
    anchor_at: InstantText
    timezone: str = ""
    participants: list[str]
    restrictions: list[WeeklyWindowRequest] = []
    starts_at: InstantText | None = None
    ends_at: InstantText | None = None
    layers: list[CreateOnCallLayer] = []
    hand_off_email: bool = False


class OnCallNow(Schema, frozen=True, kw_only=True):
    """Channel or person on call with the end of the shift, and the override that selected it.

    For a person, `channel_id` is the id of the user and `channel_name` the name. In a gap both are
    absent. `until` is absent if the gap never ends.
    """

    schedule_id: UUID
    channel_id: UUID | UnsetType = UNSET
    channel_name: str | UnsetType = UNSET
    until: InstantText | UnsetType = UNSET
    override_id: UUID | UnsetType = UNSET


class OnCallOfSchedule(OnCallNow, frozen=True, kw_only=True):
    """Who is on call by one of the schedules of a project."""

    schedule_name: str


class OnCallShift(Schema, frozen=True, kw_only=True):
    """Shift, override or gap. A gap has no `channel_id`. `layer` counts from 0."""

    from_: InstantText = msgspec.field(name="from")
    to: InstantText
    channel_id: UUID | UnsetType = UNSET
    channel_name: str | UnsetType = UNSET
    layer: int | UnsetType = UNSET
    override_id: UUID | UnsetType = UNSET


class OnCallNowQuery(msgspec.Struct, frozen=True):
    """`at` is the instant, by default now."""

    at: str | None = None


class OnCallShiftsQuery(msgspec.Struct, frozen=True):
    from_: str | None = msgspec.field(name="from", default=None)
    to: str | None = None


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


class CoverRequest(Schema, frozen=True, kw_only=True):
    """Request for cover of the duty of `channel_id` in a span.

    `wanted_id` is the person who is asked, absent for everybody. In return that person is covered
    from `return_starts_at` to `return_ends_at`. `accepted_at` is absent while the request is open.
    """

    id: UUID
    schedule_id: UUID
    channel_id: UUID
    channel_name: str
    wanted_id: UUID | UnsetType = UNSET
    wanted_name: str | UnsetType = UNSET
    starts_at: InstantText
    ends_at: InstantText
    return_starts_at: InstantText | UnsetType = UNSET
    return_ends_at: InstantText | UnsetType = UNSET
    note: str
    created_by: str
    created_at: InstantText
    accepted_by_id: UUID | UnsetType = UNSET
    accepted_by_name: str | UnsetType = UNSET
    accepted_at: InstantText | UnsetType = UNSET


class CreateCoverRequest(RequestSchema, frozen=True, kw_only=True):
    """`channel_id` is the person on call in the whole span, by default the caller.

    `wanted_id` asks one person. With `return_starts_at` and `return_ends_at` the request is a swap:
    the person who accepts must be on call in that whole span.
    """

    channel_id: str = ""
    wanted_id: str = ""
    starts_at: InstantText
    ends_at: InstantText
    return_starts_at: InstantText | None = None
    return_ends_at: InstantText | None = None
    note: str = ""


class CalendarQuery(msgspec.Struct, frozen=True):
    """Calendar software sends no credential. The token of the schedule opens its calendar."""

    token: str | None = None


class CalendarToken(Schema, frozen=True, kw_only=True):
    """Token, returned once. It grants read access to the calendar of one schedule."""

    token: str
    url: str
