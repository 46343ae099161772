"""leadline audit export"""

from typing import Any, Final

import click

from .exporting import Export, export_command
from .lookup import find_organization, organization_option
from .row_writer import Rows
from .session import Api

_ENTRY: Final = (
    "created_at",
    "actor_name",
    "actor_email",
    "via_token",
    "action",
    "target",
    "id",
)


@click.group("audit")
def command() -> None:
    """Export audit logs."""


@command.command("export")
@organization_option
@click.option("--installation", is_flag=True, help="The log of the installation, as global admin.")
@export_command
def export_(export: Export, organization: str | None, installation: bool) -> None:
    """Export an audit log to its oldest entry, the newest first.

    The log of an organization requires the role org_admin.

    \b
    Example:
      leadline audit export --organization acme -o audit.csv
    Exit status: 0 complete, 1 refused, failed or incomplete, 2 usage error, 130 interrupted.
    """
    if installation and organization is not None:
        raise click.UsageError("--organization and --installation exclude each other")

    async def work(api: Api, rows: Rows) -> None:
        path = "/admin/audit"
        if not installation:
            home = await find_organization(api, organization)
            path = f"/organizations/{home['id']}/audit"

        def visit(row: dict[str, Any]) -> bool:
            rows.write(row)
            return True

        await export.walk(api, path, "export the audit log", visit)

    export.run(_ENTRY, work)
