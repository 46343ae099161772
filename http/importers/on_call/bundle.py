"""Bundle of an import of on-call: people are named by their address, the rest by uids."""

from collections.abc import Mapping, Sequence
from typing import Any

from ....storage.core.slug import free_slug, slug_of
from .document import OnCallImport


def on_call_bundle(found: OnCallImport, organization: str, project: str) -> dict[str, Any]:
    """Returns the bundle of format 3. It states only the sections that the import has.

    A project has one default route: further ones are lost.
    """
    schedules = _uids(found.schedules, "schedule")
    policies = _uids(found.policies, "policy")
    sections: dict[str, Any] = {
        "schedules": {schedules[one["name"]]: _schedule(one) for one in found.schedules},
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


def contact_lines(found: OnCallImport) -> list[str]:
    """Returns what each person has to do, because a bundle has no contact methods."""
    return [
        f"{person['email']} adds and confirms {method['kind']} {method['address']}"
        " in the own profile"
        for person in found.people
        for method in person["contact_methods"]
    ]


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
