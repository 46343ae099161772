"""leadline oncall"""

from typing import Any

import click

from ..service_lookup import ResourceNotFound
from .lookup import find_project, near_names, project_option
from .printed import moment, print_json
from .session import Api, Session, api_command
from .table import Column, print_table


async def on_call_now(api: Api, project: str) -> list[dict[str, Any]]:
    """Returns the schedules of a project, each with its current person."""
    found = await api.get(f"{project}/oncall", "read who is on call")
    return [{"schedule": one.pop("schedule_name"), **one} for one in found]


def on_call_cells(one: dict[str, Any]) -> tuple[Any, ...]:
    how = "override" if one.get("override_id") else "rotation"
    if "channel_id" not in one:
        how = "gap"
    until = moment(one["until"]) if "until" in one else "-"
    return one["schedule"], one.get("channel_name", "nobody"), until, how


ON_CALL_COLUMNS = (
    Column("SCHEDULE", cut=True),
    Column("ON CALL", cut=True),
    Column("UNTIL"),
    Column("BY"),
)


@click.command("oncall")
@click.argument("schedule", required=False)
@project_option
@api_command
def command(session: Session, schedule: str | None, project: str | None) -> None:
    """Show who is on call now, in all schedules of a project or in one.

    SCHEDULE is the name or the id of a schedule.

    \b
    Example:
      leadline oncall
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> list[dict[str, Any]]:
        home = await find_project(api, project)
        found = await on_call_now(api, home.path)
        if schedule is None:
            return found
        chosen = [one for one in found if schedule in (one["schedule"], one["schedule_id"])]
        if not chosen:
            hint = near_names(schedule, [one["schedule"] for one in found])
            raise ResourceNotFound(f"schedule {schedule} not found in {home.named}{hint}")
        return chosen

    found = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    rows = [on_call_cells(one) for one in found]
    print_table(ON_CALL_COLUMNS, rows, "The project has no on-call schedules.")
