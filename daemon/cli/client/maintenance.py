"""leadline maintenance start|list|end"""

from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import click

from ..api_client import DurationParam
from ..service_lookup import ResourceNotFound
from .lookup import find_monitor, find_project, monitor_slugs, project_option
from .printed import minute, moment, print_json
from .session import Api, Session, api_command
from .table import Column, print_table

# A start in the past needs a preview of its effect on figures. The request takes a moment.
LEAD: Final = timedelta(seconds=5)


@click.group("maintenance")
def command() -> None:
    """Start, list and end maintenance."""


@command.command("start")
@click.option(
    "--for",
    "seconds",
    type=DurationParam("1m", "30d", "30m"),
    required=True,
    help="Duration, such as 30m or 2h.",
)
@click.option("--monitor", help="Only this monitor.  [default: the whole project]")
@click.option("--reason", default="", help="Reason, which status pages show.")
@project_option
@api_command
def start(
    session: Session, seconds: float, monitor: str | None, reason: str, project: str | None
) -> None:
    """Start maintenance now. It begins within 5 s, by the clock of the server.

    Runs in maintenance count as neither up nor down, and raise no alarms.

    \b
    Example:
      leadline maintenance start --for 30m --monitor web --reason "Upgrade"
    Exit status: 0 started, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> dict[str, Any]:
        home = await find_project(api, project)
        body: dict[str, Any] = {"reason": reason}
        uid = home.uid
        if monitor is not None:
            found = await find_monitor(api, project, monitor)
            body["monitor_id"], uid = found["id"], found["project_id"]
        # The newest answer has the clock of the server.
        await api.get("/version", "read the clock of the server")
        begin = api.server_time + LEAD
        body["starts_at"] = begin.isoformat()
        body["ends_at"] = (begin + timedelta(seconds=seconds)).isoformat()
        path = f"/projects/{uid}/maintenance"
        return dict(await api.send("POST", path, body, "start the maintenance"))

    made = session.run(ask)
    if session.as_json:
        print_json(made)
        return
    scope = monitor or "the project"
    click.echo(f"Maintenance of {scope} until {moment(made['ends_at'])}")
    click.echo(f"Its id is {made['id']}; `leadline maintenance end` ends it early")


@command.command("list")
@project_option
@click.option("--all", "every", is_flag=True, help="Also maintenance that is over.")
@api_command
def list_(session: Session, project: str | None, every: bool) -> None:
    """List present and announced maintenance.

    \b
    Example:
      leadline maintenance list
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> tuple[list[dict[str, Any]], dict[str, str]]:
        home = await find_project(api, project)
        found = await api.get(f"{home.path}/maintenance", "list maintenance")
        found = [one for one in found if every or end_of(one) > api.server_time]
        named = any("monitor_id" in one for one in found)
        return found, await monitor_slugs(api, home) if named else {}

    found, slugs = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    rows = [
        (
            minute(one["starts_at"]),
            minute(end_of(one).isoformat()),
            slugs.get(one.get("monitor_id", ""), "project"),
            one["reason"],
            one["id"],
        )
        for one in found
    ]
    columns = [Column("BEGINS"), Column("ENDS"), Column("OF", cut=True)]
    nothing = "No maintenance." if every else "No present or announced maintenance."
    print_table([*columns, Column("REASON", cut=True), Column("ID")], rows, nothing)


def is_present(one: dict[str, Any], now: datetime) -> bool:
    """Returns whether the maintenance has begun, or begins within LEAD, and is not over."""
    return datetime.fromisoformat(one["starts_at"]) <= now + LEAD and now < end_of(one)


def end_of(one: dict[str, Any]) -> datetime:
    """Returns the planned end, or the earlier instant at which the maintenance was ended."""
    return datetime.fromisoformat(one.get("cancel_effective_at") or one["ends_at"])


@command.command("end")
@click.argument("maintenance", metavar="[ID]", type=click.UUID, required=False)
@click.option("--monitor", help="End the present maintenance of this monitor.")
@project_option
@api_command
def end(
    session: Session, maintenance: UUID | None, monitor: str | None, project: str | None
) -> None:
    """End present maintenance now, or cancel announced maintenance.

    Without ID, the command ends the present maintenance of the project, or of --monitor, if there
    is exactly one.

    \b
    Example:
      leadline maintenance end
      leadline maintenance end --monitor web
    Exit status: 0 ended, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    if maintenance is not None and monitor is not None:
        raise click.UsageError("ID and --monitor exclude each other")

    async def ask(api: Api) -> str:
        uid = str(maintenance or await _present(api, project, monitor))
        await api.send("DELETE", f"/maintenance/{uid}", None, f"end maintenance {uid}")
        return uid

    ended = session.run(ask)
    if session.as_json:
        print_json({"id": ended, "ended": True})
    else:
        click.echo(f"Ended maintenance {ended}")


async def _present(api: Api, project: str | None, monitor: str | None) -> str:
    """Returns the id of the only present maintenance, of the monitor if one is named."""
    if monitor is None:
        home = (await find_project(api, project)).uid
        of_monitor = None
    else:
        found = await find_monitor(api, project, monitor)
        home, of_monitor = found["project_id"], found["id"]
    windows = await api.get(f"/projects/{home}/maintenance", "list maintenance")
    present = [
        one["id"]
        for one in windows
        if is_present(one, api.server_time)
        and (of_monitor is None or one.get("monitor_id") == of_monitor)
    ]
    if not present:
        raise ResourceNotFound(f"no present maintenance of {monitor or 'the project'}")
    if len(present) > 1:
        raise ResourceNotFound(f"several are present: give the id of one: {', '.join(present)}")
    return str(present[0])
