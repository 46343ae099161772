"""Bundle of an import of on-call: people are named by their address, the rest by uids."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....storage.bundles.rules.bundle_oncall import OVERRIDES_MOST
from ....storage.core.instant import Instant, from_text
from ....storage.core.slug import free_slug, slug_of
from .document import OnCallImport


def on_call_bundle(
    found: OnCallImport, organization: str, project: str, now: Instant
) -> dict[str, Any]:
    """Returns the bundle of format 3. It states only the sections that the import has.

    A project has one default route: further ones are lost. So are overrides that have ended by
    `now`, and those beyond OVERRIDES_MOST of a schedule, the latest ones first.
    """
    kept = [{**one, "overrides": _coming(found, one, now)} for one in found.schedules]
    schedules = _uids(found.schedules, "schedule")
    policies = _uids(found.policies, "policy")
    sections: dict[str, Any] = {
        "people": _people(found),
        "schedules": {schedules[one["name"]]: _schedule(one) for one in kept},
        "escalation_policies": {
            policies[one["name"]]: _policy(one, schedules) for one in found.policies
        },
    }
    defaults = [one["policy"] for one in found.routes if one["policy"] in policies]
    if defaults:
        sections["routes"] = {"default": {"escalation_policy": policies[defaults[0]]}}
    for name in dict.fromkeys(defaults[1:]):
        found.lose(f"default route to {name}: a project has one, to {defaults[0]}")
    head = {"format": 3, "organization": organization, "project": project}
    return head | {name: entries for name, entries in sections.items() if entries}


def _coming(found: OnCallImport, schedule: Mapping[str, Any], now: Instant) -> list[Any]:
    """Returns the overrides to import, in their order, by which the last one precedes."""
    every = schedule["overrides"]
    coming = [one for one in every if from_text(one["ends_at"]) > now]
    if len(coming) < len(every):
        many = len(every) - len(coming)
        found.lose(f"schedule {schedule['name']}: overrides that have ended are left out: {many}")
    if len(coming) <= OVERRIDES_MOST:
        return coming
    first = sorted(range(len(coming)), key=lambda at: coming[at]["starts_at"])[:OVERRIDES_MOST]
    many = len(coming) - OVERRIDES_MOST
    rule = f"overrides beyond the first {OVERRIDES_MOST} are left out: {many}"
    found.lose(f"schedule {schedule['name']}: {rule}")
    return [coming[at] for at in sorted(first)]


def contact_lines(found: OnCallImport) -> list[str]:
    """Returns what each person has to do, because an imported contact method is not verified."""
    return [
        f"{person['email']} confirms {method['kind']} {method['address']} in the own profile"
        for person in found.people
        for method in person["contact_methods"]
    ]


def _people(found: OnCallImport) -> dict[str, Any]:
    """Returns the people by a uid from the part of the address before the at sign."""
    made: dict[str, Any] = {}
    for one in found.people:
        uid = free_slug(slug_of(one["email"].partition("@")[0], "person"), made)
        made[uid] = _brief(one)
    return made


def _uids(objects: Sequence[Mapping[str, Any]], otherwise: str) -> dict[str, str]:
    """Returns a uid for each name; the names are distinct."""
    found: dict[str, str] = {}
    for one in objects:
        taken = set(found.values())
        found[one["name"]] = free_slug(slug_of(one["name"], otherwise), taken)
    return found


def _schedule(one: Mapping[str, Any]) -> dict[str, Any]:
    return _brief({**_layer(one), "layers": [_layer(layer) for layer in one["layers"]]})


def _layer(one: Mapping[str, Any]) -> dict[str, Any]:
    return _brief({**one, "participants": [{"person": email} for email in one["participants"]]})


def _brief(one: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in one.items() if value not in ([], "")}


def _policy(one: Mapping[str, Any], schedules: Mapping[str, str]) -> dict[str, Any]:
    steps = [
        {
            "after_seconds": step["after_seconds"],
            "targets": [
                target if "person" in target else {"schedule": schedules[target["schedule"]]}
                for target in step["targets"]
            ],
        }
        for step in one["steps"]
    ]
    return {"name": one["name"], "steps": steps}
