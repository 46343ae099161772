"""leadline oncall-document import|apply"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from ....http.importers.import_result import CannotImport
from ....http.importers.on_call import TOOLS, read_on_call
from ....storage.core.instant import from_text, to_text
from ..options import fail, print_out
from ..safe_text import shown
from ..service_lookup import ResourceNotFound
from .lookup import find_project, organization_of, project_option
from .session import Api, Session, api_command

# What a document does not state: a replacement keeps it.
_KEPT: Final = ("hand_off_email", "repeat_last", "ack_timeout_seconds")
_PATH: Final = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("oncall-document")
def command() -> None:
    """Take over on-call of another tool: people, schedules, overrides and escalation policies.

    \b
    Example:
      leadline oncall-document import opsgenie export.json > oncall.json
      leadline oncall-document apply oncall.json --project shop
    """


@command.command("import")
@click.argument("tool", type=click.Choice(TOOLS))
@click.argument("path", type=_PATH)
def import_(tool: str, path: Path) -> None:
    """Convert an export of another tool to a document of on-call, and report what is not supported.

    The document goes to the standard output, the report to the standard error output.

    \b
    Example:
      leadline oncall-document import pagerduty export.json > oncall.json
    Exit status: 0 done, 1 the file is not from that tool, 2 usage error.
    """
    try:
        found = read_on_call(tool, path)
    except (CannotImport, OSError) as error:
        raise fail(f"{path}: {error}") from error
    print_out(json.dumps(found.document, indent=2).encode() + b"\n")
    for text in found.lost:
        click.echo(f"- {shown(text, 300)}", err=True)
    for text in found.unused:
        click.echo(f"  {shown(text, 300)}", err=True)
    for person in found.people:
        for method in person["contact_methods"]:
            what = f"{method['kind']} {method['address']}"
            told = f"{person['email']} adds and confirms {what} in the own profile"
            click.echo(f"  {shown(told, 300)}", err=True)
    counts = f"{len(found.schedules)} schedules, {len(found.policies)} escalation policies"
    click.echo(f"{len(found.people)} people, {counts} imported", err=True)


@dataclass(slots=True)
class Application:
    """Ids of people by address, objects of a project by name, and what was written."""

    path: str
    people: dict[str, str]
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    written: list[str] = field(default_factory=list)


def people_in(document: Mapping[str, Any]) -> set[str]:
    """Returns the addresses that schedules, overrides and steps name."""
    found: set[str] = set()
    for one in document["schedules"]:
        for layer in (one, *one["layers"]):
            found.update(layer["participants"])
        found.update(override["person"] for override in one["overrides"])
    for policy in document["escalation_policies"]:
        for step in policy["steps"]:
            found.update(target["person"] for target in step["targets"] if "person" in target)
    return found


def schedule_body(one: Mapping[str, Any], people: Mapping[str, str]) -> dict[str, Any]:
    """Returns the request of a schedule, with the ids of its people."""

    def layer(given: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: value for key, value in given.items() if key not in ("overrides", "layers")}
        return {**kept, "participants": [people[email] for email in given["participants"]]}

    return {**layer(one), "layers": [layer(further) for further in one["layers"]]}


def policy_body(
    one: Mapping[str, Any], people: Mapping[str, str], schedules: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the request of an escalation policy, with the ids of its targets."""
    steps = []
    for step in one["steps"]:
        targets = [
            {"type": "person", "id": people[target["person"]]}
            if "person" in target
            else {"type": "schedule", "id": schedules[target["schedule"]]["id"]}
            for target in step["targets"]
        ]
        steps.append({"after_seconds": step["after_seconds"], "targets": targets})
    return {"name": one["name"], "steps": steps}


@command.command("apply")
@click.argument("path", type=_PATH)
@project_option
@api_command
def apply(session: Session, path: Path, project: str | None) -> None:
    """Create or replace the schedules and escalation policies of a document, by their names.

    Every person must be a member of the project, by a membership of it or of its organization. If
    one is missing, nothing is written. A second call with the same document changes nothing.
    Settings that a document does not state are kept: mails at a hand-off, the repetition of the
    last step, and the expiry of an acknowledgement. Overrides that are over are left out, and
    overrides that are not in the document stay: delete those that the other tool removed.

    \b
    Example:
      leadline oncall-document apply oncall.json --project shop
    Exit status: 0 written, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    try:
        document = json.loads(path.read_bytes())
        wanted = people_in(document)
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        raise fail(f"{path}: is no document of on-call") from error

    async def work(api: Api) -> Application:
        home = await find_project(api, project)
        organization = await organization_of(api, home)
        members = await api.get(f"/organizations/{organization}/members", "list members")
        ids = people_of(members, home.uid, wanted)
        return await write_document(api, document, Application(home.path, ids))

    done = session.run(work)
    for text in done.written:
        click.echo(shown(text, 300))


def people_of(
    members: Iterable[Mapping[str, Any]], project: str, wanted: Iterable[str]
) -> dict[str, str]:
    """Returns the ids of people by their address, of the memberships of an organization.

    Raises: ResourceNotFound if one is no member of the project.
    """
    known = {
        one["email"].lower(): one["user_id"]
        for one in members
        if one.get("project_id") in (None, project)
    }
    missing = sorted(email for email in wanted if email.lower() not in known)
    if missing:
        raise ResourceNotFound(f"not members of the project: {', '.join(missing)}")
    return {email: known[email.lower()] for email in wanted}


async def _read(api: Api, document: Mapping[str, Any], to: Application) -> None:
    """Reads the objects of the project. Raises: ResourceNotFound if a name has not one object."""
    schedules = await api.get(f"{to.path}/oncall-schedules", "list on-call schedules")
    policies = await api.get(f"{to.path}/escalation-policies", "list escalation policies")
    written = {one["name"] for one in document["schedules"]}
    named = {
        target["schedule"]
        for policy in document["escalation_policies"]
        for step in policy["steps"]
        for target in step["targets"]
        if "person" not in target
    }
    to.schedules = _by_name("on-call schedules", schedules, written | named)
    wanted = {one["name"] for one in document["escalation_policies"]}
    to.policies = _by_name("escalation policies", policies, wanted)
    missing = sorted(named - written - set(to.schedules))
    if missing:
        raise ResourceNotFound(f"no on-call schedules of the project: {', '.join(missing)}")


def _by_name(
    kind: str, known: Iterable[dict[str, Any]], wanted: Collection[str]
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in known:
        if one["name"] in found and one["name"] in wanted:
            raise ResourceNotFound(f"several {kind} have the name {one['name']}")
        found[one["name"]] = one
    return found


async def write_document(api: Api, document: Mapping[str, Any], to: Application) -> Application:
    """Writes schedules, overrides and policies in the order of their references.

    Raises: ResourceNotFound before the first write.
    """
    await _read(api, document, to)
    for one in document["schedules"]:
        body = schedule_body(one, to.people)
        await _put(api, to, "oncall-schedules", to.schedules, body)
        await _overrides(api, to, one)
    for one in document["escalation_policies"]:
        body = policy_body(one, to.people, to.schedules)
        await _put(api, to, "escalation-policies", to.policies, body)
    for route in document.get("routes", ()):
        to.written.append(f"alert route to {route['policy']}: set it as the default route")
    return to


async def _put(
    api: Api, to: Application, kind: str, known: dict[str, dict[str, Any]], body: dict[str, Any]
) -> None:
    """Creates an object, or replaces the known one of its name."""
    name, method, path = body["name"], "POST", f"{to.path}/{kind}"
    before = known.get(name)
    if before is not None:
        method, path = "PUT", f"/{kind}/{before['id']}"
        body = {key: before[key] for key in _KEPT if key in before} | body
    known[name] = await api.send(method, path, body, f"write {name}")
    to.written.append(f"{'replaced' if before else 'created'} {name}")


async def _overrides(api: Api, to: Application, one: Mapping[str, Any]) -> None:
    path = f"/oncall-schedules/{to.schedules[one['name']]['id']}/overrides"
    known = {
        (item["channel_id"], item["starts_at"], item["ends_at"])
        for item in await api.get(path, "list overrides")
    }
    now = f"{api.server_time:%Y-%m-%dT%H:%M:%S.000Z}"
    for override in one["overrides"]:
        person = to.people[override["person"]]
        span = (_full(override["starts_at"]), _full(override["ends_at"]))
        if span[1] <= now or (person, *span) in known:
            continue
        body = {"channel_id": person, "starts_at": span[0], "ends_at": span[1]}
        await api.send("POST", path, body, f"write an override of {one['name']}")
        to.written.append(f"created an override of {one['name']}")


def _full(text: str) -> str:
    """Returns an instant as the API writes it, so that texts can be compared."""
    return to_text(from_text(text))
