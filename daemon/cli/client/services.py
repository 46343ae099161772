"""leadline services list|show"""

from typing import Any, Final

import click

from .lookup import ProjectRef, find_project, find_service, project_option
from .printed import moment, print_json
from .session import Api, Session, api_command
from .table import Column, print_fields, print_table

# Each service of a list is one more request for its health.
HEALTH_MOST: Final = 100
WINDOWS: Final = ("24h", "7d", "30d", "90d")


@click.group("services")
def command() -> None:
    """List services, and show their health and error budget."""


@command.command("list")
@project_option
@api_command
def list_(session: Session, project: str | None) -> None:
    """List the services of a project with their health now.

    Health is `unknown` without current measurements. Of more than 100 services it is not read.

    \b
    Example:
      leadline services list
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> list[dict[str, Any]]:
        home = await find_project(api, project)
        found = list(await api.get(f"{home.path}/services", "list services"))
        if len(found) > HEALTH_MOST:
            return found
        return [{**one, "health": await _health(api, home, one["service"]["id"])} for one in found]

    found = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    columns = (
        Column("HEALTH"),
        Column("SLUG"),
        Column("NAME", cut=True),
        Column("MEMBERS", right=True),
        Column("SEALED THROUGH"),
    )
    rows = [
        (
            one.get("health", {}).get("sli", ""),
            one["service"]["slug"],
            one["service"]["name"],
            one["sli_members"] + one["context_members"],
            moment(one.get("sealed_through")) or "never",
        )
        for one in found
    ]
    print_table(columns, rows, "The project has no services.")


async def _health(api: Api, home: ProjectRef, service: str) -> dict[str, Any]:
    return dict(await api.get(f"{home.path}/services/{service}/health", "read the health"))


@command.command("show")
@click.argument("service")
@project_option
@click.option(
    "--window",
    type=click.Choice(WINDOWS),
    default="30d",
    show_default=True,
    help="Window of the figures.",
)
@api_command
def show_service(session: Session, service: str, project: str | None, window: str) -> None:
    """Show a service: its health, its objectives and its figures of a window.

    A figure that the server withholds is shown as withheld, with the reason.

    \b
    Example:
      leadline services show checkout --window 7d
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> dict[str, Any]:
        home, uid = await find_service(api, project, service)
        path, doing = f"{home.path}/services/{uid}", f"show service {service}"
        return {
            "detail": await api.get(path, doing),
            "health": await _health(api, home, uid),
            "report": await api.get(f"{path}/reliability?window={window}", doing),
        }

    found = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    print_fields(_fields(found, window))


def _fields(found: dict[str, Any], window: str) -> list[tuple[str, Any]]:
    one, report, health = found["detail"]["service"], found["report"], found["health"]
    declared = found["detail"].get("declaration") or {}
    targets = [f"{t['objective']:g} % over {t['window']}" for t in found["detail"]["sla_targets"]]
    budget = report.get("budget")
    known = [
        ("Name", one["name"]),
        ("Slug", one["slug"]),
        ("Id", one["id"]),
        ("Description", one["description"]),
        ("Health", health["sli"]),
        ("Health as of", moment(health["as_of"])),
        ("Members", f"{len(declared.get('sli', []))} in the SLI, {_context(declared)} context"),
        ("Objectives", ", ".join(targets) or "none"),
        (f"Availability {window}", _availability(report)),
        (f"Coverage {window}", f"{report['coverage'] * 100:.2f} %"),
        ("Budget burned", f"{budget['burned_percent']:.2f} %" if budget else "no figure"),
        ("Sealed through", moment(report["sealed_through"]) or "never"),
    ]
    return [(name, value) for name, value in known if value not in ("", None)]


def _context(declared: dict[str, Any]) -> int:
    return len(set(declared.get("monitors", [])) - set(declared.get("sli", [])))


def _availability(report: dict[str, Any]) -> str:
    value = report.get("availability")
    if value is not None:
        return f"{value * 100:.4f} % ({report['status']})"
    reason = report.get("aggregate_withheld") or report.get("reason") or report["status"]
    return f"withheld: {reason}"
