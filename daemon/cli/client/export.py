"""leadline export results|incidents"""

from datetime import datetime, timedelta
from typing import Any, Final

import click

from ..api_client import DurationParam
from .exporting import Export, export_command
from .lookup import find_monitor, find_project, project_option
from .row_writer import RowWriter
from .session import PAGE, Api

_RESULT: Final = (
    "ts",
    "monitor",
    "up",
    "latency_ms",
    "code",
    "msg",
    "conditions",
    "monitor_id",
)
_INCIDENT: Final = (
    "number",
    "title",
    "status",
    "impact",
    "source",
    "started_at",
    "resolved_at",
    "acknowledged_at",
    "acknowledged_by_name",
    "monitor_id",
    "service_id",
    "id",
)

since_option = click.option(
    "--since",
    type=DurationParam("1m", "3660d", "7d"),
    help="Only the newest part, such as 7d.  [default: everything that is stored]",
)


@click.group("export")
def command() -> None:
    """Export results and incidents as CSV or JSON lines."""


@command.command("results")
@click.argument("monitors", metavar="[MONITOR...]", nargs=-1)
@project_option
@since_option
@export_command
def results(
    export: Export, monitors: tuple[str, ...], project: str | None, since: float | None
) -> None:
    """Export the results of monitors, of each the newest first. Without MONITOR, of all.

    The export needs the memory of one page of rows. Results that were deleted by the retention of
    the server are not in it.

    \b
    Example:
      leadline export results web --since 7d -o web.csv
      leadline export results --format jsonl
    Exit status: 0 complete, 1 refused, failed or incomplete, 2 usage error, 130 interrupted.
    """

    async def work(api: Api, rows: RowWriter) -> None:
        named = [await find_monitor(api, project, one) for one in monitors]
        for one in named:
            await _results_of(export, api, rows, one, since)
        if named:
            return
        home, cursor = await find_project(api, project), ""
        while True:
            page = await api.page(f"{home.path}/monitors", PAGE, cursor, "list monitors")
            for one in page.rows:
                await _results_of(export, api, rows, one, since)
            cursor = page.cursor
            if not cursor:
                return

    export.run(_RESULT, work)


async def _results_of(
    export: Export, api: Api, rows: RowWriter, monitor: dict[str, Any], since: float | None
) -> None:
    first = _first(api, since)

    def visit(row: dict[str, Any]) -> bool:
        if first is not None and datetime.fromisoformat(row["ts"]) < first:
            return False
        rows.write({**row, "monitor": monitor["slug"]})
        return True

    path = f"/monitors/{monitor['id']}/heartbeats"
    await export.walk(api, path, f"export results of {monitor['slug']}", visit)


def _first(api: Api, since: float | None) -> datetime | None:
    return None if since is None else api.server_time - timedelta(seconds=since)


@command.command("incidents")
@project_option
@click.option(
    "--status",
    type=click.Choice(["open", "resolved", "all"]),
    default="all",
    show_default=True,
    help="Which incidents.",
)
@since_option
@export_command
def incidents(export: Export, project: str | None, status: str, since: float | None) -> None:
    """Export the incidents of a project, the newest first.

    --since selects incidents that were opened in that time.

    \b
    Example:
      leadline export incidents --since 90d -o incidents.csv
    Exit status: 0 complete, 1 refused, failed or incomplete, 2 usage error, 130 interrupted.
    """

    async def work(api: Api, rows: RowWriter) -> None:
        home = await find_project(api, project)
        # An id needs no request, and the newest answer has the clock of the server.
        await api.get("/version", "read the clock of the server")
        first = _first(api, since)

        def visit(row: dict[str, Any]) -> bool:
            if first is not None and datetime.fromisoformat(row["created_at"]) < first:
                return False
            rows.write(row)
            return True

        query = "" if status == "all" else f"?status={status}"
        await export.walk(api, f"{home.path}/incidents{query}", "export incidents", visit)

    export.run(_INCIDENT, work)
