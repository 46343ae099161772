"""On-call entries: settings as in a bundle, and drafts to write.

The settings are compared, reported and exported.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from msgspec import UNSET

from ....probes.senders.deliver import SPECS
from ...core.instant import Instant, to_text
from ...core.refusal import Refused
from ...incidents.rows import AlertRouteRow
from ...incidents.rules.alert_route import route_matchers
from ...incidents.transactions.put_alert_routes import RouteDraft
from ...mutes.rules.label_matcher import BadMatcher, matchers_text
from ...notifications.rows import ChannelRow
from ...notifications.transactions.channel_secrets import plain_settings
from ...notifications.transactions.edit_channels import ChannelDraft
from ...oncall.rows import (
    EscalationPolicyRow,
    EscalationTargetRow,
    LayerRow,
    ParticipantRow,
    ScheduleRow,
)
from ...oncall.rules.escalation import TargetKind
from ...oncall.rules.weekly_hours import WEEKDAYS, WeeklyWindow, clock_text, window_of
from ...oncall.transactions.edit_escalation_policies import PolicyDraft, StepDraft
from ...oncall.transactions.edit_schedules import LayerDraft, ScheduleDraft
from ..rules.bundle import ServiceEntry
from ..rules.bundle_oncall import (
    ChannelEntry,
    LayerEntry,
    OverrideEntry,
    PagedEntry,
    ParticipantEntry,
    PolicyEntry,
    RoutesEntry,
    RouteTargetEntry,
    ScheduleEntry,
    instant_of,
    window_of_entry,
)
from .bundle_context import BundleContext, resolve, resolve_named, word_for

# Settings that an export omits. A type is always written.
CHANNEL_DEFAULTS: Final[Mapping[str, Any]] = {
    "config": {},
    "enabled": True,
    "takes_tickets": False,
    "takes_warnings": False,
}
SCHEDULE_DEFAULTS: Final[Mapping[str, Any]] = {
    "timezone": "",
    "restrictions": [],
    "starts_at": None,
    "ends_at": None,
    "layers": [],
    "hand_off_email": False,
}
POLICY_DEFAULTS: Final[Mapping[str, Any]] = {
    "repeat_last": False,
    "ack_timeout_seconds": 0,
    "default": False,
}
_NO_MEMBER: Final = "is not a member of the project, which begins with an accepted invitation"
ROUTES_DEFAULTS: Final[Mapping[str, Any]] = {"rules": [], "default": None}


def brief(settings: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of an export: without defaults, also in the layers of a schedule."""
    found = {
        name: value
        for name, value in settings.items()
        if name not in defaults or value != defaults[name]
    }
    if "layers" in found:
        found["layers"] = [brief(layer, defaults) for layer in found["layers"]]
    return found


def name_of_entry(uid: str, entry: ChannelEntry | ScheduleEntry | PolicyEntry) -> str:
    return entry.name if isinstance(entry.name, str) else uid


def channel_in_words(row: ChannelRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "type": row.type,
        "config": plain_settings(row.config),
        "enabled": row.enabled,
        "takes_tickets": row.takes_tickets,
        "takes_warnings": row.takes_warnings,
    }


def wanted_channel(uid: str, entry: ChannelEntry, row: ChannelRow | None) -> ChannelDraft:
    """Returns the draft of an entry. A secret that the channel has stored itself stays blank.

    Raises:
        Refused invalid if the type differs.
    """
    stored = {} if row is None else plain_settings(row.config)
    if row is not None and row.type != entry.type:
        rule = f"is {row.type}, and types are not changed: give it another uid"
        raise Refused("invalid", f"channels.{uid}.type", rule)
    spec = SPECS[entry.type]
    kept = {
        name: ""
        for name in sorted(spec.secrets & set(stored))
        if not entry.config.get(f"{name}_ref")
    }
    config = kept | {name: value for name, value in entry.config.items() if value}
    return ChannelDraft(
        entry.type,
        name_of_entry(uid, entry),
        config,
        enabled=entry.enabled,
        takes_tickets=entry.takes_tickets,
        takes_warnings=entry.takes_warnings,
    )


def draft_in_words(draft: ChannelDraft) -> dict[str, Any]:
    return {
        "name": draft.name,
        "type": draft.type,
        "config": dict(draft.config),
        "enabled": draft.enabled,
        "takes_tickets": draft.takes_tickets,
        "takes_warnings": draft.takes_warnings,
    }


def windows_in_words(windows: Sequence[WeeklyWindow]) -> list[dict[str, Any]]:
    return [
        {
            "weekdays": [WEEKDAYS[day] for day in one.weekdays],
            "from": clock_text(one.from_),
            "to": clock_text(one.until),
        }
        for one in windows
    ]


def hours_in_words(zone: str, windows: Sequence[str]) -> dict[str, Any]:
    """Returns support hours of their stored form."""
    return {"timezone": zone, "windows": windows_in_words([window_of(one) for one in windows])}


def hours_of_entry(entry: ServiceEntry) -> tuple[str, list[WeeklyWindow]]:
    """Returns zone and windows, without a zone if there are no windows."""
    if entry.support_hours is UNSET or not entry.support_hours.windows:
        return "", []
    windows = [window_of_entry(one) for one in entry.support_hours.windows]
    return entry.support_hours.timezone, windows


def schedule_in_words(
    row: ScheduleRow,
    layers: Sequence[LayerRow],
    participants: Sequence[ParticipantRow],
    place: BundleContext,
) -> dict[str, Any]:
    people: list[list[dict[str, str]]] = [[] for _ in (row, *layers)]
    for one in participants:
        kind = TargetKind.PERSON if one.is_person else TargetKind.CHANNEL
        people[one.layer].append(target_in_words(kind, one.uid, place))
    return {
        "name": row.name,
        **_layer_in_words(row, people[0]),
        "layers": [
            {"name": layer.name, **_layer_in_words(layer, named)}
            for layer, named in zip(layers, people[1:], strict=True)
        ],
        "hand_off_email": row.hand_off_email,
    }


def _layer_in_words(row: ScheduleRow | LayerRow, people: list[dict[str, str]]) -> dict[str, Any]:
    return {
        "shift_seconds": row.shift_seconds,
        "anchor_at": to_text(row.anchor_at),
        "timezone": row.timezone,
        "participants": people,
        "restrictions": windows_in_words([window_of(one) for one in row.restrictions]),
        "starts_at": _text(row.starts_at),
        "ends_at": _text(row.ends_at),
    }


def _text(at: Instant | None) -> str | None:
    return None if at is None else to_text(at)


@dataclass(frozen=True, slots=True)
class OverrideDraft:
    """Override of an entry. `channel` is the id of a channel or an account."""

    channel: UUID
    starts_at: Instant
    ends_at: Instant


@dataclass(frozen=True, slots=True)
class BundledSchedule:
    """Schedule of an entry. A new one has those of its overrides that have not ended."""

    draft: ScheduleDraft
    overrides: list[OverrideDraft]


def wanted_schedule(
    uid: str, entry: ScheduleEntry, place: BundleContext, now: Instant, *, is_new: bool
) -> BundledSchedule:
    """Returns the draft of an entry, with overrides only for a new schedule.

    An override that people deleted or replaced would come back as the newest one, which precedes.

    Raises:
        Refused invalid with an unknown reference.
    """
    path = f"schedules.{uid}"
    layers = [
        LayerDraft(one.name, **_layer_draft(f"{path}.layers[{at}]", one, place))
        for at, one in enumerate(entry.layers)
    ]
    draft = ScheduleDraft(
        name_of_entry(uid, entry),
        layers=layers,
        hand_off_email=entry.hand_off_email,
        **_layer_draft(path, entry, place),
    )
    overrides = [
        _override_draft(f"{path}.overrides[{at}]", one, place)
        for at, one in enumerate(entry.overrides)
    ]
    coming = [one for one in dict.fromkeys(overrides) if one.ends_at > now]
    return BundledSchedule(draft, coming if is_new else [])


def _override_draft(path: str, entry: OverrideEntry, place: BundleContext) -> OverrideDraft:
    starts_at, ends_at = instant_of(entry.starts_at), instant_of(entry.ends_at)
    assert starts_at is not None, "the instants were checked"
    assert ends_at is not None, "the instants were checked"
    return OverrideDraft(resolve_target(path, entry, place)[1], starts_at, ends_at)


def _layer_draft(
    path: str, entry: ScheduleEntry | LayerEntry, place: BundleContext
) -> dict[str, Any]:
    anchor_at = instant_of(entry.anchor_at)
    assert anchor_at is not None, "the instants were checked"
    return {
        "shift_seconds": entry.shift_seconds,
        "anchor_at": anchor_at,
        "participants": [
            str(resolve_target(f"{path}.participants[{at}]", one, place)[1])
            for at, one in enumerate(entry.participants)
        ],
        "timezone": entry.timezone,
        "windows": tuple(window_of_entry(one) for one in entry.restrictions),
        "starts_at": None if entry.starts_at is None else instant_of(entry.starts_at),
        "ends_at": None if entry.ends_at is None else instant_of(entry.ends_at),
    }


def overrides_in_words(
    overrides: Sequence[OverrideDraft], place: BundleContext
) -> list[dict[str, str]]:
    return [
        {
            **_participant_in_words(one.channel, place),
            "starts_at": to_text(one.starts_at),
            "ends_at": to_text(one.ends_at),
        }
        for one in overrides
    ]


def schedule_draft_in_words(wanted: BundledSchedule, place: BundleContext) -> dict[str, Any]:
    draft = wanted.draft
    overrides = overrides_in_words(wanted.overrides, place)
    return {
        "name": draft.name,
        **_layer_draft_in_words(draft, place),
        "layers": [
            {"name": layer.name, **_layer_draft_in_words(layer, place)} for layer in draft.layers
        ],
        "hand_off_email": draft.hand_off_email,
        **({"overrides": overrides} if overrides else {}),
    }


def _layer_draft_in_words(draft: LayerDraft, place: BundleContext) -> dict[str, Any]:
    return {
        "shift_seconds": draft.shift_seconds,
        "anchor_at": to_text(draft.anchor_at),
        "timezone": draft.timezone,
        "participants": [_participant_in_words(UUID(one), place) for one in draft.participants],
        "restrictions": windows_in_words(draft.windows),
        "starts_at": _text(draft.starts_at),
        "ends_at": _text(draft.ends_at),
    }


def _participant_in_words(uid: UUID, place: BundleContext) -> dict[str, str]:
    kind = TargetKind.CHANNEL if uid in place.channels.names else TargetKind.PERSON
    return target_in_words(kind, uid, place)


def policy_in_words(
    row: EscalationPolicyRow, targets: Sequence[EscalationTargetRow], place: BundleContext
) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"after_seconds": after, "targets": []} for after in row.after_seconds
    ]
    for one in targets:
        steps[one.step - 1]["targets"].append(target_in_words(one.kind, one.uid, place))
    return {
        "name": row.name,
        "repeat_last": row.repeat_last,
        "ack_timeout_seconds": row.ack_timeout_seconds,
        "default": row.uid == place.default_policy,
        "steps": steps,
    }


def wanted_policy(uid: str, entry: PolicyEntry, place: BundleContext) -> PolicyDraft:
    """Returns the draft of an entry.

    Raises:
        Refused invalid with an unknown reference.
    """
    steps = []
    for number, step in enumerate(entry.steps):
        path = f"escalation_policies.{uid}.steps[{number}].targets"
        targets = [
            resolve_target(f"{path}[{at}]", one, place) for at, one in enumerate(step.targets)
        ]
        steps.append(StepDraft(step.after_seconds, [(kind, str(own)) for kind, own in targets]))
    name = name_of_entry(uid, entry)
    return PolicyDraft(name, steps, entry.repeat_last, entry.ack_timeout_seconds)


def policy_draft_in_words(
    draft: PolicyDraft, place: BundleContext, *, is_default: bool
) -> dict[str, Any]:
    return {
        "name": draft.name,
        "repeat_last": draft.repeat_last,
        "ack_timeout_seconds": draft.ack_timeout_seconds,
        "default": is_default,
        "steps": [
            {
                "after_seconds": step.after_seconds,
                "targets": [target_in_words(kind, UUID(own), place) for kind, own in step.targets],
            }
            for step in draft.steps
        ],
    }


def resolve_target(
    path: str, entry: ParticipantEntry | PagedEntry, place: BundleContext
) -> tuple[TargetKind, UUID]:
    """Returns kind and id of a target.

    Raises:
        Refused invalid if it is unknown, or several objects have its name.
    """
    if isinstance(entry.person, str):
        account = place.accounts.get(entry.person.lower())
        if account is None:
            raise Refused("invalid", f"{path}.person", _NO_MEMBER)
        return TargetKind.PERSON, account
    if isinstance(entry.channel, str):
        own = resolve_named(f"{path}.channel", entry.channel, place.channels)
        return TargetKind.CHANNEL, UUID(own)
    assert isinstance(entry, PagedEntry), "a participant is a person or a channel"
    if isinstance(entry.schedule, str):
        own = resolve_named(f"{path}.schedule", entry.schedule, place.schedules)
        return TargetKind.SCHEDULE, UUID(own)
    assert isinstance(entry.policy, str), "one of the four is given"
    return TargetKind.POLICY, UUID(resolve_named(f"{path}.policy", entry.policy, place.policies))


def target_in_words(kind: TargetKind, uid: UUID, place: BundleContext) -> dict[str, str]:
    if kind is TargetKind.PERSON:
        return {"person": place.people.get(uid, str(uid))}
    known = {
        TargetKind.CHANNEL: place.channels,
        TargetKind.SCHEDULE: place.schedules,
        TargetKind.POLICY: place.policies,
    }[kind]
    return {kind.value: word_for(uid, known)}


def routes_in_words(
    rows: Sequence[AlertRouteRow], services: Mapping[int, str], place: BundleContext
) -> dict[str, Any]:
    """Returns the stored routes. `services` are the words of services by key."""
    rules, default = [], None
    for row in rows:
        target: dict[str, str] = {}
        if row.service is not None:
            target = {"service": services[row.service]}
        elif row.policy_uid is not None:
            target = {"escalation_policy": word_for(row.policy_uid, place.policies)}
        if row.matchers:
            rules.append({"matchers": row.matchers, **target})
        else:
            default = target
    return {"rules": rules, "default": default}


def wanted_routes(
    entry: RoutesEntry, services: Mapping[str, UUID], place: BundleContext
) -> tuple[list[RouteDraft], RouteDraft | None]:
    """Returns the routes and the default. `services` are ids by reference.

    Raises:
        Refused invalid with an unknown reference or wrong matchers.
    """
    rules = []
    for at, one in enumerate(entry.rules):
        path = f"routes.rules[{at}]"
        try:
            matchers = matchers_text(route_matchers(one.matchers))
        except BadMatcher as fault:
            raise Refused("invalid", f"{path}.matchers", str(fault)) from None
        rules.append(_route_draft(path, matchers, one, services, place))
    default = entry.default
    if default is None:
        return rules, None
    return rules, _route_draft("routes.default", "", default, services, place)


def _route_draft(
    path: str,
    matchers: str,
    entry: RouteTargetEntry,
    services: Mapping[str, UUID],
    place: BundleContext,
) -> RouteDraft:
    policy = resolve_named(f"{path}.escalation_policy", entry.escalation_policy, place.policies)
    named = [entry.service] if entry.service else []
    found = resolve(f"{path}.service", named, services)
    return RouteDraft(
        matchers=matchers,
        service=found[0] if found else None,
        policy=UUID(policy) if policy else None,
    )


def route_drafts_in_words(
    rules: Sequence[RouteDraft],
    default: RouteDraft | None,
    services: Mapping[UUID, str],
    place: BundleContext,
) -> dict[str, Any]:
    return {
        "rules": [
            {"matchers": one.matchers, **dict(_target_in_words(one, services, place))}
            for one in rules
        ],
        "default": None if default is None else dict(_target_in_words(default, services, place)),
    }


def _target_in_words(
    draft: RouteDraft, services: Mapping[UUID, str], place: BundleContext
) -> Iterator[tuple[str, str]]:
    if draft.service is not None:
        yield "service", services[draft.service]
    if draft.policy is not None:
        yield "escalation_policy", word_for(draft.policy, place.policies)
