"""leadline status"""

from collections import Counter
from datetime import datetime
from typing import Any, Final

import click

from .incidents import INCIDENT_COLUMNS, incident_cells, incidents_of
from .lookup import find_project, project_option
from .maintenance import is_present
from .monitors import state_of
from .oncall import ON_CALL_COLUMNS, on_call_cells, on_call_now
from .printed import print_json
from .session import Api, Session, api_command
from .table import Column, print_table

PROBLEM: Final = 3
INCIDENTS_MOST: Final = 100
_STATES: Final = ("down", "pending", "up", "paused", "retired")


@click.command("status")
@project_option
@click.option(
    "--exit-code",
    is_flag=True,
    help=f"Exit with {PROBLEM} if a monitor is down or an incident open.",
)
@api_command
def command(session: Session, project: str | None, exit_code: bool) -> None:
    """Show what needs attention in a project, and who is on call.

    A monitor that is pending has no result yet: it is neither up nor down.

    \b
    Example:
      leadline status
      leadline status --exit-code --json
    Exit status: 0 printed, 1 refused or failed, 2 usage error,
    3 with --exit-code: a monitor is down or an incident is open, 130 interrupted.
    """

    async def ask(api: Api) -> tuple[dict[str, Any], datetime]:
        home = await find_project(api, project)
        monitors = await api.pages(f"{home.path}/monitors", "list monitors")
        incidents, more = await incidents_of(api, home.path, "open", INCIDENTS_MOST)
        windows = await api.get(f"{home.path}/maintenance", "list maintenance")
        now = api.server_time
        counts = Counter(state_of(one) for one in monitors)
        found = {
            "project": home.named,
            "monitors": {state: counts[state] for state in _STATES},
            "down": [one for one in monitors if state_of(one) == "down"],
            "incidents": incidents,
            "more_incidents": more,
            "maintenance": [one for one in windows if is_present(one, now)],
            "on_call": await on_call_now(api, home.path),
        }
        return found, now

    found, now = session.run(ask)
    if session.as_json:
        print_json(found)
    else:
        _print(found, now)
    if exit_code and (found["down"] or found["incidents"]):
        raise SystemExit(PROBLEM)


def _print(found: dict[str, Any], now: datetime) -> None:
    counts = found["monitors"]
    said = ", ".join(f"{counts[state]} {state}" for state in _STATES if counts[state])
    click.echo(f"Monitors of {found['project']}: {said or 'none'}")
    if found["maintenance"]:
        click.echo(f"Present maintenance: {len(found['maintenance'])}")
    if found["down"]:
        click.echo()
        columns = [Column("DOWN"), Column("NAME", cut=True), Column("TARGET", cut=True)]
        print_table(columns, [(o["slug"], o["name"], o["target"]) for o in found["down"]], "")
    click.echo()
    rows = [incident_cells(one, now) for one in found["incidents"]]
    print_table(INCIDENT_COLUMNS, rows, "No open incidents.")
    if found["more_incidents"]:
        click.echo(f"Only the newest {INCIDENTS_MOST} incidents.", err=True)
    if found["on_call"]:
        click.echo()
        print_table(ON_CALL_COLUMNS, [on_call_cells(one) for one in found["on_call"]], "")
