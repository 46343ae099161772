"""leadline export results|incidents"""

from datetime import datetime, timedelta
from typing import Any, Final

import click

from .export_results import results
from .exporting import Export, export_command, since_option
from .lookup import find_project, project_option
from .row_writer import Rows
from .session import Api

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


@click.group("export")
def command() -> None:
    """Export results and incidents as CSV or JSON lines."""


command.add_command(results)


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

    async def work(api: Api, rows: Rows) -> None:
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
