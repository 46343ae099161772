"""On-call entries of a bundle of format 3: channels, schedules, escalation policies, alert routes.

A person is named by the e-mail address of the account, everything else by its uid in the bundle,
its name or its id.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ....probes.senders.deliver import SPECS
from ...core.instant import Instant, from_text
from ...core.refusal import Refused
from ...incidents.rules.alert_route import ROUTES_MOST
from ...oncall.rules.escalation import ladder_fault
from ...oncall.rules.oncall_schedule import LAYERS_MOST, PARTICIPANTS
from ...oncall.rules.weekly_hours import (
    WINDOWS_MOST,
    WeeklyWindow,
    clock_minutes,
    weekday_numbers,
)

CHANNELS_MOST = 100
SCHEDULES_MOST = 100
POLICIES_MOST = 100
# Those of a schedule that have not ended are at most as many.
OVERRIDES_MOST = 200
# The only uid of the alert routes, which are one object.
ROUTES_UID = "routes"

Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
FromText = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$")]
ClockText = Annotated[str, Meta(pattern="^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$")]


class OnCallEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Part of a bundle. Its representation has no settings, since they can be confidential."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"


class ChannelEntry(OnCallEntry, frozen=True, kw_only=True):
    """Channel. A secret setting is named in SETTING_ref: `url_ref: slack-url`."""

    name: str | UnsetType = UNSET
    type: str
    config: dict[str, str] = {}
    enabled: bool = True
    takes_tickets: bool = False
    takes_warnings: bool = False


class WeeklyEntry(OnCallEntry, frozen=True, kw_only=True):
    """Window on each of `weekdays` (all without one), in local time, such as 09:00 to 17:00."""

    weekdays: list[Weekday] = []
    from_: FromText = msgspec.field(name="from")
    to: ClockText


class ParticipantEntry(OnCallEntry, frozen=True, kw_only=True):
    """One of the two."""

    person: str | UnsetType = UNSET
    channel: str | UnsetType = UNSET


class OverrideEntry(ParticipantEntry, frozen=True, kw_only=True):
    """Override of a schedule: a person or a channel."""

    starts_at: str
    ends_at: str


class LayerEntry(OnCallEntry, frozen=True, kw_only=True):
    """Further layer of a schedule, with a name."""

    name: str
    shift_seconds: int
    anchor_at: str
    timezone: str = ""
    participants: list[ParticipantEntry]
    restrictions: list[WeeklyEntry] = []
    starts_at: str | None = None
    ends_at: str | None = None


class ScheduleEntry(OnCallEntry, frozen=True, kw_only=True):
    """On-call schedule with the settings of its first layer, and further layers.

    Those of `overrides` that have not ended are created with the schedule, and never later.
    """

    name: str | UnsetType = UNSET
    shift_seconds: int
    anchor_at: str
    timezone: str = ""
    participants: list[ParticipantEntry]
    restrictions: list[WeeklyEntry] = []
    starts_at: str | None = None
    ends_at: str | None = None
    layers: list[LayerEntry] = []
    hand_off_email: bool = False
    overrides: list[OverrideEntry] = []


class PagedEntry(OnCallEntry, frozen=True, kw_only=True):
    """Target of a step: one of the four."""

    person: str | UnsetType = UNSET
    channel: str | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    policy: str | UnsetType = UNSET


class StepEntry(OnCallEntry, frozen=True, kw_only=True):
    after_seconds: int
    targets: list[PagedEntry]


class PolicyEntry(OnCallEntry, frozen=True, kw_only=True):
    """Escalation policy. `default`: it starts for incidents about Leadline in the project."""

    name: str | UnsetType = UNSET
    repeat_last: bool = False
    ack_timeout_seconds: int = 0
    default: bool = False
    steps: list[StepEntry]


class RouteTargetEntry(OnCallEntry, frozen=True, kw_only=True):
    """A service or an escalation policy."""

    service: str = ""
    escalation_policy: str = ""


class RouteEntry(RouteTargetEntry, frozen=True, kw_only=True):
    """Alert route. `matchers` have the syntax of Alertmanager."""

    matchers: str


class RoutesEntry(OnCallEntry, frozen=True, kw_only=True):
    """All alert routes of the project in their order, and the default."""

    rules: list[RouteEntry] = []
    default: RouteTargetEntry | None = None


class SupportHoursEntry(OnCallEntry, frozen=True, kw_only=True):
    """Support hours of a service; without windows it has none."""

    timezone: str = ""
    windows: list[WeeklyEntry] = []


def channel_fault(entry: ChannelEntry) -> tuple[str, str] | None:
    """Returns the wrong field of a channel and its rule: an unknown type, or a secret."""
    spec = SPECS.get(entry.type)
    if spec is None:
        return "type", f"must be one of {', '.join(sorted(SPECS))}"
    for name in sorted(spec.secrets):
        if entry.config.get(name):
            hint = f"keep it as a secret of the project and name it in {name}_ref"
            return f"config.{name}", f"is a secret, which a bundle must not contain: {hint}"
    return None


def instants_in(entry: ScheduleEntry) -> Iterator[tuple[str, str]]:
    """Yields (field, text) of the instants of a schedule."""
    every: list[tuple[str, ScheduleEntry | LayerEntry]] = [("", entry)]
    every += [(f"layers[{at}].", layer) for at, layer in enumerate(entry.layers)]
    for prefix, layer in every:
        for name in ("anchor_at", "starts_at", "ends_at"):
            text = getattr(layer, name)
            if text is not None:
                yield f"{prefix}{name}", text
    for at, one in enumerate(entry.overrides):
        yield f"overrides[{at}].starts_at", one.starts_at
        yield f"overrides[{at}].ends_at", one.ends_at


def instant_of(text: str) -> Instant | None:
    """Returns the instant, None if the text is not one."""
    try:
        return from_text(text)
    except ValueError:
        return None


def schedule_fault(entry: ScheduleEntry) -> tuple[str, str] | None:
    """Returns the wrong field of a schedule and its rule. Bounds come first."""
    if (wrong := _length_fault(entry)) is not None:
        return wrong
    for name, text in instants_in(entry):
        if instant_of(text) is None:
            return name, "must be an instant such as 2026-01-31T09:00:00.000Z"
    every: list[tuple[str, ScheduleEntry | LayerEntry]] = [("", entry)]
    every += [(f"layers[{at}].", layer) for at, layer in enumerate(entry.layers)]
    for prefix, layer in every:
        for at, one in enumerate(layer.participants):
            if not is_one_of(one.person, one.channel):
                return f"{prefix}participants[{at}]", "must be one of person and channel"
    for at, one in enumerate(entry.overrides):
        if not is_one_of(one.person, one.channel):
            return f"overrides[{at}]", "must be one of person and channel"
    return None


def _length_fault(entry: ScheduleEntry) -> tuple[str, str] | None:
    """Returns the first list of a schedule that is too long, and its rule."""
    lists: list[tuple[str, Sequence[object], int]] = [
        ("layers", entry.layers, LAYERS_MOST - 1),
        ("overrides", entry.overrides, OVERRIDES_MOST),
    ]
    every: list[tuple[str, ScheduleEntry | LayerEntry]] = [("", entry)]
    every += [(f"layers[{at}].", layer) for at, layer in enumerate(entry.layers[:LAYERS_MOST])]
    for prefix, layer in every:
        lists.append((f"{prefix}participants", layer.participants, PARTICIPANTS[1]))
        lists.append((f"{prefix}restrictions", layer.restrictions, WINDOWS_MOST))
    for name, found, most in lists:
        if len(found) > most:
            return name, f"must have at most {most} entries"
    return None


def policy_fault(entry: PolicyEntry) -> tuple[str, str] | None:
    """Returns the wrong field of a policy and its rule. Bounds come first."""
    wrong = ladder_fault(
        [step.after_seconds for step in entry.steps], [len(step.targets) for step in entry.steps]
    )
    if wrong is not None:
        return wrong
    for number, step in enumerate(entry.steps):
        for at, one in enumerate(step.targets):
            if not is_one_of(one.person, one.channel, one.schedule, one.policy):
                rule = "must be one of person, channel, schedule and policy"
                return f"steps[{number}].targets[{at}]", rule
    return None


def routes_fault(entry: RoutesEntry) -> tuple[str, str] | None:
    if len(entry.rules) > ROUTES_MOST:
        return "rules", f"must have at most {ROUTES_MOST} entries"
    return None


def is_one_of(*given: str | UnsetType) -> bool:
    """Returns whether exactly one text is given, and is not empty."""
    return [one is not UNSET for one in given].count(True) == 1 and "" not in given


def window_of_entry(entry: WeeklyEntry) -> WeeklyWindow:
    """Returns the window. The form of its times was checked."""
    from_, until = clock_minutes(entry.from_), clock_minutes(entry.to)
    assert from_ is not None, "the pattern was checked"
    assert until is not None, "the pattern was checked"
    return WeeklyWindow(weekday_numbers(entry.weekdays), from_, until)


def expect_entry(path: str, fault: tuple[str, str] | None) -> None:
    """Raises: Refused invalid with the field below the path."""
    if fault is not None:
        raise Refused("invalid", f"{path}.{fault[0]}", fault[1])
