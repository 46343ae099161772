"""leadline incidents list|show|ack|note|resolve"""

import sys
from datetime import datetime
from typing import Any, Final

import click

from ..safe_text import shown
from .lookup import IncidentParam, find_incident, find_project, project_option
from .printed import moment, print_json, span
from .session import Api, Session, api_command
from .table import Column, print_fields, print_table

LISTED_MOST: Final = 500
INCIDENT_COLUMNS: Final = (
    Column("NO", right=True),
    Column("STATUS"),
    Column("IMPACT"),
    Column("AGE", right=True),
    Column("ACK BY", cut=True),
    Column("TITLE", cut=True),
)


@click.group("incidents")
def command() -> None:
    """List, acknowledge, explain and resolve incidents."""


def incident_cells(one: dict[str, Any], now: datetime) -> tuple[Any, ...]:
    """Returns the cells of an incident. Its age is the time since it started."""
    by = one.get("acknowledged_by_name") or ("yes" if one.get("acknowledged_at") else "-")
    age = now - datetime.fromisoformat(one["started_at"])
    return (
        one["number"],
        one["status"],
        one["impact"],
        span(max(0, int(age.total_seconds()))),
        by,
        one["title"],
    )


async def incidents_of(
    api: Api, project: str, status: str, limit: int
) -> tuple[list[dict[str, Any]], bool]:
    """Returns the newest incidents, and whether there are more. `status` can be `all`."""
    query = "" if status == "all" else f"?status={status}"
    page = await api.page(f"{project}/incidents{query}", limit, "", "list incidents")
    return page.rows, bool(page.cursor)


@command.command("list")
@project_option
@click.option(
    "--status",
    type=click.Choice(["open", "resolved", "all"]),
    default="open",
    show_default=True,
    help="Which incidents.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, LISTED_MOST),
    default=50,
    show_default=True,
    help="Largest number of incidents; `leadline export incidents` has all.",
)
@api_command
def list_(session: Session, project: str | None, status: str, limit: int) -> None:
    """List the incidents of a project, the newest first.

    \b
    Example:
      leadline incidents list
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> tuple[list[dict[str, Any]], bool, datetime]:
        home = await find_project(api, project)
        found, more = await incidents_of(api, home.path, status, limit)
        return found, more, api.server_time

    found, more, now = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    nothing = "No open incidents." if status == "open" else "No incidents."
    print_table(INCIDENT_COLUMNS, [incident_cells(one, now) for one in found], nothing)
    if more:
        click.echo(f"Only the newest {limit}: give --limit for more.", err=True)


@command.command("show")
@click.argument("incident", type=IncidentParam())
@project_option
@api_command
def show_incident(session: Session, incident: str, project: str | None) -> None:
    """Show an incident with its updates.

    \b
    Example:
      leadline incidents show 12
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        found = await find_incident(api, project, incident)
        path = f"/incidents/{found['id']}/updates"
        return found, await api.get(path, f"show incident {incident}")

    found, updates = session.run(ask)
    if session.as_json:
        print_json({**found, "updates": updates})
        return
    fields = [
        ("Title", found["title"]),
        ("Number", found["number"]),
        ("Status", found["status"]),
        ("Impact", found["impact"]),
        ("Started", moment(found["started_at"])),
        ("Resolved", moment(found.get("resolved_at"))),
        ("Acknowledged", _acknowledged(found)),
        ("Id", found["id"]),
    ]
    print_fields([(name, value) for name, value in fields if value])
    click.echo()
    columns = [Column("AT"), Column("STATUS"), Column("BY"), Column("PUBLIC")]
    rows = [
        (
            moment(one["created_at"]),
            one.get("status", ""),
            one.get("author", ""),
            "yes" if one["public"] else "no",
            one["body"],
        )
        for one in updates
    ]
    print_table([*columns, Column("TEXT", cut=True)], rows, "No updates.")


def _acknowledged(found: dict[str, Any]) -> str:
    if not found.get("acknowledged_at"):
        return "no"
    by = found.get("acknowledged_by_name")
    return f"{moment(found['acknowledged_at'])}{f' by {by}' if by else ''}"


@command.command("ack")
@click.argument("incidents", metavar="INCIDENT...", type=IncidentParam(), nargs=-1, required=True)
@project_option
@api_command
def ack(session: Session, incidents: tuple[str, ...], project: str | None) -> None:
    """Acknowledge incidents: you take responsibility, and their escalation stops.

    A repeated acknowledgement changes nothing.

    \b
    Example:
      leadline incidents ack 12
    Exit status: 0 acknowledged, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> list[dict[str, Any]]:
        found = [await find_incident(api, project, one) for one in incidents]
        changed = []
        for one in found:
            path = f"/incidents/{one['id']}/acknowledge"
            done = await api.send("POST", path, None, f"acknowledge incident {one['number']}")
            changed.append(done)
            if not session.as_json:
                by = done.get("acknowledged_by_name") or "this account"
                click.echo(f"Incident {one['number']} is acknowledged by {_line(by)}")
        return changed

    changed = session.run(ask)
    if session.as_json:
        print_json(changed)


def _line(text: str) -> str:
    return shown(text, 120)


public_option = click.option(
    "--public/--internal",
    default=None,
    help="Whether status pages show the text.  [default: public with a new status, else internal]",
)


@command.command("note")
@click.argument("incident", type=IncidentParam())
@click.argument("text")
@public_option
@project_option
@api_command
def note(
    session: Session, incident: str, text: str, public: bool | None, project: str | None
) -> None:
    """Add a note to an incident. The text `-` is read from the standard input.

    \b
    Example:
      leadline incidents note 12 "The provider confirms the outage."
    Exit status: 0 added, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    if text == "-":
        text = sys.stdin.read().strip()
    _update(session, incident, project, {"body": text}, public, "Added the note to")


@command.command("resolve")
@click.argument("incident", type=IncidentParam())
@click.option("--message", "-m", default="", help="Text of the update.")
@public_option
@project_option
@api_command
def resolve(
    session: Session, incident: str, message: str, public: bool | None, project: str | None
) -> None:
    """Resolve an incident.

    \b
    Example:
      leadline incidents resolve 12 -m "The database is back."
    Exit status: 0 resolved, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    body = {"status": "resolved", "body": message}
    _update(session, incident, project, body, public, "Resolved")


def _update(
    session: Session,
    incident: str,
    project: str | None,
    body: dict[str, Any],
    public: bool | None,
    done: str,
) -> None:
    given = body if public is None else {**body, "public": public}
    verb = "resolve" if "status" in body else "add a note to"

    async def ask(api: Api) -> tuple[dict[str, Any], dict[str, Any]]:
        found = await find_incident(api, project, incident)
        path = f"/incidents/{found['id']}/updates"
        doing = f"{verb} incident {found['number']}"
        return found, dict(await api.send("POST", path, given, doing))

    found, update = session.run(ask)
    if session.as_json:
        print_json(update)
        return
    where = "public" if update["public"] else "internal"
    click.echo(f"{done} incident {found['number']}: {_line(found['title'])} ({where})")
