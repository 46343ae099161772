"""Imported schedules for the rule of on-call, and groups of layers of which one is active."""

from collections.abc import Iterable, Mapping
from typing import Any

from ....storage.core.instant import Instant, from_text
from ....storage.oncall.rules.oncall_schedule import OnCallOverride, OnCallSchedule, duties
from .document import OnCallImport
from .limits import rule_layer


def roster_of(
    schedule: Mapping[str, Any], people: Mapping[str, int]
) -> tuple[OnCallSchedule, list[OnCallOverride]]:
    """Returns an imported schedule with its overrides; `people` are keys of the addresses."""
    layers = tuple(rule_layer(one, people) for one in (schedule, *schedule["layers"]))
    overrides = [
        OnCallOverride(
            number,
            people[one["person"]],
            from_text(one["starts_at"]),
            from_text(one["ends_at"]),
        )
        for number, one in enumerate(schedule["overrides"])
    ]
    return OnCallSchedule(layers), overrides


def holder_spans(
    schedule: Mapping[str, Any], holder: str, from_at: Instant, until: Instant
) -> Iterable[tuple[Instant, Instant]]:
    """Returns the parts of a span in which a person is on call by the layers and overrides."""
    layers = (schedule, *schedule["layers"])
    named = {one for layer in layers for one in layer["participants"]}
    named |= {one["person"] for one in schedule["overrides"]} | {holder}
    people = {email: key for key, email in enumerate(sorted(named))}
    roster, overrides = roster_of(schedule, people)
    found = duties(roster, overrides, from_at, until)
    return [(one.from_at, one.until) for one in found if one.channel == people[holder]]


def add_groups(
    found: OnCallImport, name: str, layers: Iterable[tuple[set[int], str, dict[str, Any]]]
) -> list[tuple[dict[str, Any], set[str]]]:
    """Adds schedules by each of which one person is on call. Returns them with their titles.

    Layers that are active at the same time are in different schedules. `layers` are (minutes of the
    week, title, layer).
    """
    groups: list[tuple[set[int], list[dict[str, Any]], list[str]]] = []
    for minutes, title, layer in layers:
        for taken, members, titles in groups:
            if not taken & minutes:
                taken.update(minutes)
                members.append(layer)
                titles.append(title)
                break
        else:
            groups.append((set(minutes), [layer], [title]))
    made = []
    for number, (_, members, titles) in enumerate(groups):
        one = found.add_schedule(name if number == 0 else f"{name} / {titles[0]}", members)
        if one is not None:
            made.append((one, set(titles)))
    if len(made) > 1:
        found.lose(f"schedule {name}: became {len(made)} schedules, one for each person on call")
    return made
