"""Limits of Leadline for imported schedules and policies: the rules that the API applies later."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....storage.core.instant import SECOND, Instant, from_text
from ....storage.core.naming import name_fault
from ....storage.oncall.rules.escalation import ladder_fault
from ....storage.oncall.rules.oncall_schedule import LAYERS_MOST, OnCallLayer, layer_fault
from ....storage.oncall.rules.weekly_hours import WeeklyWindow, clock_minutes, weekday_numbers


def rule_layer(one: Mapping[str, Any], people: Mapping[str, int]) -> OnCallLayer:
    """Returns a layer for the rule of on-call; `people` are keys of the addresses.

    Raises: LookupError, ValueError.
    """
    return OnCallLayer(
        from_text(one["anchor_at"]),
        one["shift_seconds"] * SECOND,
        tuple(people[email] for email in one["participants"]),
        one["timezone"],
        tuple(_window(window) for window in one["restrictions"]),
        maybe_instant(one.get("starts_at")),
        maybe_instant(one.get("ends_at")),
    )


def maybe_instant(text: str | None) -> Instant | None:
    return from_text(text) if text else None


def layers_fault(layers: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns what the API would refuse of the layers of a schedule. Raises: ValueError."""
    if len(layers) > LAYERS_MOST:
        return f"has {len(layers)} layers, at most {LAYERS_MOST} are possible"
    for one in layers:
        wrong = name_fault(one["name"])
        # The rule counts the participants and does not look at them.
        rule = rule_layer({**one, "participants": ()}, {})
        fault = ("name", wrong) if wrong else layer_fault(rule, len(one["participants"]))
        if fault is not None:
            return f"layer {one['name']}: {_fault_text(one, *fault)}"
    return None


def _fault_text(one: Mapping[str, Any], field: str, rule: str) -> str:
    value = one.get(field)
    return f"{field} {rule}" if isinstance(value, list) else f"{field} {value} {rule}"


def steps_fault(steps: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns what the API would refuse of the steps of an escalation policy."""
    after = [step["after_seconds"] for step in steps]
    fault = ladder_fault(after, [len(step["targets"]) for step in steps])
    return " ".join(fault) if fault else None


def _window(one: Mapping[str, Any]) -> WeeklyWindow:
    from_, until = clock_minutes(one["from"]), clock_minutes(one["to"])
    if from_ is None or until is None:
        raise ValueError("a window has a start and an end")
    return WeeklyWindow(weekday_numbers(one["weekdays"]), from_, until)
