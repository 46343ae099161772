"""Row structs of on-call that other features or layers use, and their constants."""

from collections.abc import Sequence
from uuid import UUID

import msgspec

from ..core.instant import SECOND, Instant
from .rules.cover import Cover, CoverSpan
from .rules.escalation import TargetKind
from .rules.oncall_schedule import OnCallLayer, OnCallOverride, OnCallSchedule
from .rules.weekly_hours import window_of


class EscalationPolicyRow(msgspec.Struct, frozen=True):
    """Escalation policy. `after_seconds` has one entry per step.

    An acknowledgement expires after `ack_timeout_seconds`, 0 for never.
    """

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    name: str
    repeat_last: bool
    after_seconds: list[int]
    created_at: Instant
    updated_at: Instant
    ack_timeout_seconds: int = 0
    # Bundle fields, as in a monitor.
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None


class EscalationTargetRow(msgspec.Struct, frozen=True):
    """Target of a step: a channel, a schedule or, without both, a policy; with `uid` and `name`.

    `is_person`: the channel is that of a person, with the id of the account.
    """

    policy: int
    step: int
    channel: int | None
    schedule: int | None
    uid: UUID
    name: str
    is_person: bool = False

    @property
    def kind(self) -> TargetKind:
        if self.channel is None:
            return TargetKind.POLICY if self.schedule is None else TargetKind.SCHEDULE
        return TargetKind.PERSON if self.is_person else TargetKind.CHANNEL


class ScheduleRow(msgspec.Struct, frozen=True):
    """On-call schedule with its first layer. An empty `timezone` counts elapsed time.

    `has_calendar`: a calendar token exists. `restrictions` are the weekly hours of the first layer.
    `hand_off_email`: a person who comes on call gets a summary.
    """

    org: int
    id: int
    uid: UUID
    project: int
    project_uid: UUID
    name: str
    anchor_at: Instant
    shift_seconds: int
    timezone: str
    has_calendar: bool
    created_at: Instant
    updated_at: Instant

    restrictions: list[str] = []
    starts_at: Instant | None = None
    ends_at: Instant | None = None
    hand_off_email: bool = False
    # Bundle fields, as in a monitor.
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None

    def roster(
        self, layers: Sequence["LayerRow"], participants: Sequence["ParticipantRow"]
    ) -> OnCallSchedule:
        """Returns the schedule for the rule, with the further layers and all participants."""
        rows: list[ScheduleRow | LayerRow] = [self, *layers]
        return OnCallSchedule(
            tuple(
                OnCallLayer(
                    layer.anchor_at,
                    layer.shift_seconds * SECOND,
                    tuple(one.channel for one in participants if one.layer == place),
                    layer.timezone,
                    tuple(window_of(text) for text in layer.restrictions),
                    layer.starts_at,
                    layer.ends_at,
                )
                for place, layer in enumerate(rows)
            )
        )


class LayerRow(msgspec.Struct, frozen=True):
    """Further layer of a schedule. A later layer takes precedence."""

    schedule: int
    name: str
    anchor_at: Instant
    shift_seconds: int
    timezone: str
    restrictions: list[str]
    starts_at: Instant | None
    ends_at: Instant | None


class ParticipantRow(msgspec.Struct, frozen=True):
    """Participant of a layer. Layer 0 is the first one."""

    schedule: int
    channel: int
    uid: UUID
    name: str
    enabled: bool
    is_person: bool = False
    layer: int = 0


class OnCallOverrideRow(msgspec.Struct, frozen=True):
    org: int
    id: int
    uid: UUID
    schedule: int
    schedule_uid: UUID
    project: int
    channel: int
    channel_uid: UUID
    channel_name: str
    starts_at: Instant
    ends_at: Instant
    created_at: Instant

    @property
    def as_rule(self) -> OnCallOverride:
        return OnCallOverride(self.id, self.channel, self.starts_at, self.ends_at)


class CoverRequestRow(msgspec.Struct, frozen=True):
    """Cover request. `wanted` is the person who is asked, None for everybody.

    `accepted_at` is None while the request is open.
    """

    org: int
    id: int
    uid: UUID
    schedule: int
    schedule_uid: UUID
    project: int
    channel: int
    channel_uid: UUID
    channel_name: str
    wanted: int | None
    wanted_uid: UUID | None
    wanted_name: str | None
    starts_at: Instant
    ends_at: Instant
    return_starts_at: Instant | None
    return_ends_at: Instant | None
    note: str
    author_label: str
    created_at: Instant
    accepted_by_uid: UUID | None
    accepted_by_name: str | None
    accepted_at: Instant | None

    @property
    def as_rule(self) -> Cover:
        in_return = None
        if self.return_starts_at is not None and self.return_ends_at is not None:
            in_return = CoverSpan(self.return_starts_at, self.return_ends_at)
        span = CoverSpan(self.starts_at, self.ends_at)
        return Cover(self.channel, self.wanted, span, in_return)


class OnCallMailRow(msgspec.Struct, frozen=True):
    """E-mail to a person. `attempts` counts the one that is leased."""

    id: int
    uid: UUID
    email: str
    project: UUID
    subject: str
    paragraphs: list[str]
    attempts: int
