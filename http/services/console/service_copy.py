"""Screen with a service as curl commands and as an entry of a bundle, to copy either."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import msgspec

from ....storage.bundles.rules.bundle_yaml import write_text
from ....storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ....storage.services.queries.services import select_service
from ...monitors.console.monitor_copy import CopyQuery, curl
from ...ui.form_routes import page_route
from ...ui.formatting import count
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes import services as api
from ..schemas.services import PatchServiceAlertingRequest

_CURL_NOTE: Final = (
    "The ids of monitors, of services and of the route are those of this project. In the same"
    " project, change the name and the slug first."
)


async def render_copy(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_copy", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        frame = await frame_of(ask, tx)
        bundle = await export_bundle(tx, ask.who, row.project_uid, ask.context.keyring)
    base = ask.base_url
    entries = bundle.get("services", {}).items()
    mine = {key: one for key, one in entries if one.get("slug", key) == row.slug}
    return page(
        "ui/copy_screen.html",
        frame=frame,
        row=row,
        kind="service",
        show=ask.query.show,
        curl=await _commands(ask, f"{base}/api/v1/projects/{row.project_uid}"),
        needs_jq=True,
        curl_note=_CURL_NOTE,
        # An object of a file provider is not exported.
        yaml=write_text(_document(bundle, mine)) if mine else "",
        yaml_note=_yaml_note(mine),
    )


def _document(bundle: Mapping[str, Any], mine: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the service with its members, without which it could not be declared."""
    members = {name for one in mine.values() for name in _members(one)}
    monitors = {key: one for key, one in bundle["monitors"].items() if key in members}
    has_hours = any("support_hours" in one for one in mine.values())
    return {
        "format": 3 if has_hours else 2,
        "organization": bundle["organization"],
        "project": bundle["project"],
        "monitors": monitors,
        "services": dict(mine),
    }


def _members(entry: Mapping[str, Any]) -> Sequence[str]:
    return [*entry.get("monitors", []), *entry.get("sli", [])]


def _yaml_note(mine: Mapping[str, Any]) -> str:
    """Returns what the project of the copy must already have."""
    needed = []
    for one in mine.values():
        if one.get("escalation_policy"):
            needed.append(f"the escalation policy {one['escalation_policy']}")
        if one.get("oncall_schedule"):
            needed.append(f"the schedule {one['oncall_schedule']}")
        if one.get("depends_on"):
            needed.append(
                count(
                    len(one["depends_on"]),
                    "service that it depends on",
                    "services that it depends on",
                )
            )
    if not needed:
        return "It contains the members of the service."
    return f"It contains the members. The project must have {', '.join(needed)}."


def _there(part: str) -> str:
    return f'"$PROJECT/services/$SERVICE/{part}"'


async def _commands(ask: Request, project: str) -> str:
    """Returns commands that create, declare and configure the same service."""
    uid = ask.ids["serviceID"]
    async with ask.context.pool.transaction("console_copy_project", read_only=True) as tx:
        row = await select_service(tx, uid)
    if row is None:
        raise Problem("not_found")
    detail = await api.read(replace(ask, ids={"projectID": row.project_uid, "serviceID": uid}))
    found = msgspec.to_builtins(detail)
    service, graph = found["service"], found.get("dependencies") or {}
    body = {name: service[name] for name in ("slug", "name")}
    names = ("description", "escalation_policy_id", "oncall_schedule_id", "runbook_url")
    body |= {name: service[name] for name in names if service.get(name)}
    depends_on = [one["id"] for one in graph.get("depends_on") or ()]
    body |= {"depends_on": depends_on} if depends_on else {}
    made = curl('"$PROJECT/services"', body)
    steps = [f"PROJECT={shlex.quote(project)}", f"SERVICE=$({made} | jq -r .id)"]
    declared = found["declaration"]
    if declared is not None:
        terms = {name: declared[name] for name in ("monitors", "sli", "policies")}
        declaration = {"expected_revision": 0, **terms}
        steps.append(curl(_there("declaration"), declaration, method="PUT"))
    for one in found["sla_targets"]:
        target = {"window": one["window"], "objective": one["objective"]}
        steps.append(curl(_there("sla-target"), target, method="PUT"))
    if "alerting" in found:
        given = {field.name for field in msgspec.structs.fields(PatchServiceAlertingRequest)}
        alerting = {name: value for name, value in found["alerting"].items() if name in given}
        steps.append(curl(_there("alerting"), alerting, method="PATCH"))
    return "\n\n".join(steps)


ROUTES: Final = (
    page_route(
        method="GET",
        path="/services/{serviceID}/copy",
        action=EXPORT,
        scope=("service", "serviceID"),
        handler=render_copy,
        summary="A service as curl commands and as YAML of a bundle.",
        query=CopyQuery,
    ),
)
