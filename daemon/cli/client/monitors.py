"""leadline monitors list|show|pause|resume|test|add"""

from typing import Any, Final
from urllib.parse import urlencode

import click

from ..safe_text import shown
from .lookup import find_monitor, find_project, project_option
from .monitor_draft import draft_options, drafted
from .monitor_runs import WAIT_SECONDS, result_fields, run_now
from .printed import joined, moment, print_json, span
from .session import Api, Session, api_command
from .table import Column, print_fields, print_table

SHOWN_RESULTS: Final = 5
IS_DOWN: Final = 3
_COLUMNS: Final = (
    Column("STATUS"),
    Column("SLUG"),
    Column("NAME", cut=True),
    Column("TYPE"),
    Column("EVERY", right=True),
    Column("TARGET", cut=True),
)


@click.group("monitors")
def command() -> None:
    """List, pause, resume, test and add monitors."""


def state_of(monitor: dict[str, Any]) -> str:
    """Returns the status, or `paused` and `retired`, which have no status of their own."""
    if monitor.get("retired_at"):
        return "retired"
    return str(monitor["status"]) if monitor["enabled"] else "paused"


@command.command("list")
@project_option
@click.option("--text", "-q", default="", help="Part of a name, target, slug or tag.")
@click.option("--tag", multiple=True, help="Tag; several are alternatives.")
@click.option(
    "--status",
    multiple=True,
    type=click.Choice(["up", "down", "pending"]),
    help="Status; several are alternatives.",
)
@api_command
def list_(
    session: Session, project: str | None, text: str, tag: list[str], status: list[str]
) -> None:
    """List the monitors of a project.

    \b
    Example:
      leadline monitors list --status down
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    query = selection_query(q=[text] if text else [], tag=tag, status=status)

    async def ask(api: Api) -> list[dict[str, Any]]:
        home = await find_project(api, project)
        return await api.pages(f"{home.path}/monitors{query}", "list monitors")

    found = session.run(ask)
    if session.as_json:
        print_json(found)
        return
    rows = [
        (
            state_of(one),
            one["slug"],
            one["name"],
            one["type"],
            _rhythm(one),
            one["target"],
        )
        for one in found
    ]
    print_table(_COLUMNS, rows, "No monitors match." if query else "The project has no monitors.")


def selection_query(**given: Any) -> str:
    """Returns the query of a list, empty if nothing is given."""
    return f"?{urlencode(given, doseq=True)}" if any(given.values()) else ""


@command.command("show")
@click.argument("monitor", metavar="MONITOR")
@project_option
@api_command
def show_monitor(session: Session, monitor: str, project: str | None) -> None:
    """Show a monitor and its newest results.

    \b
    Example:
      leadline monitors show web
    Exit status: 0 printed, 1 refused or failed, 2 usage error, 130 interrupted.
    """

    async def ask(api: Api) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        found = await find_monitor(api, project, monitor)
        path = f"/monitors/{found['id']}/heartbeats"
        return found, (await api.page(path, SHOWN_RESULTS, "", "list results")).rows

    found, results = session.run(ask)
    if session.as_json:
        print_json({**found, "results": results})
        return
    print_fields(_fields(found))
    click.echo()
    columns = [Column("MEASURED"), Column("RESULT"), Column("LATENCY", right=True)]
    rows = [result_fields(one) for one in results]
    print_table([*columns, Column("MESSAGE", cut=True)], rows, "No results yet.")


def _rhythm(one: dict[str, Any]) -> str:
    """Returns the interval, or the cron expression. An older server sends no schedule."""
    return one.get("schedule") or span(one["interval_seconds"])


def _fields(found: dict[str, Any]) -> list[tuple[str, Any]]:
    management = found.get("management", {})
    owner = management.get("provider") or management.get("source", "")
    known = [
        ("Name", found["name"]),
        ("Status", state_of(found)),
        ("Slug", found["slug"]),
        ("Id", found["id"]),
        ("Type", found["type"]),
        ("Target", found["target"]),
        ("Description", found.get("description", "")),
        ("Region", found["region"]),
        ("Every", _rhythm(found)),
        ("Next due", found.get("next_due_at")),
        ("Timeout", span(found["timeout_seconds"])),
        ("Failures until down", found["failure_threshold"]),
        ("Successes until up", found.get("recovery_threshold")),
        ("Conditions", joined(found["conditions"])),
        ("Tags", joined(found["tags"])),
        ("Managed by", "people" if owner == "ui" else owner),
    ]
    return [(name, value) for name, value in known if value not in ("", None)]


@command.command("pause")
@click.argument("monitors", metavar="MONITOR...", nargs=-1, required=True)
@project_option
@api_command
def pause(session: Session, monitors: tuple[str, ...], project: str | None) -> None:
    """Pause monitors: they run no checks and raise no alarms.

    \b
    Example:
      leadline monitors pause web api
    Exit status: 0 all paused, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    _enable(session, monitors, project, enabled=False)


@command.command("resume")
@click.argument("monitors", metavar="MONITOR...", nargs=-1, required=True)
@project_option
@api_command
def resume(session: Session, monitors: tuple[str, ...], project: str | None) -> None:
    """Resume paused monitors.

    \b
    Example:
      leadline monitors resume web api
    Exit status: 0 all resumed, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    _enable(session, monitors, project, enabled=True)


def _enable(
    session: Session, named: tuple[str, ...], project: str | None, *, enabled: bool
) -> None:
    """Changes the monitors in their order, after all have been found."""
    verb = "resume" if enabled else "pause"

    async def ask(api: Api) -> list[dict[str, Any]]:
        found = [await find_monitor(api, project, one) for one in named]
        changed = []
        for one in found:
            path, body = f"/monitors/{one['id']}", {"enabled": enabled}
            changed.append(await api.send("PATCH", path, body, f"{verb} {one['slug']}"))
            if not session.as_json:
                click.echo(f"{verb.capitalize()}d {one['slug']}")
        return changed

    changed = session.run(ask)
    if session.as_json:
        print_json(changed)


@command.command("test")
@click.argument("monitor", metavar="[MONITOR]", required=False)
@project_option
@draft_options
@api_command
def test(session: Session, monitor: str | None, project: str | None, **given: Any) -> None:
    """Run a check now: of a monitor, or of one that does not exist yet.

    With MONITOR the command requests an additional run, which counts like any other, and prints
    its result. Without, --type and --target describe a check whose result is not stored.

    \b
    Example:
      leadline monitors test web
      leadline monitors test --target https://example.org/ --condition '[STATUS] == 200'
    Exit status: 0 up, 1 refused or failed, 2 usage error, 3 down, 130 interrupted.
    """
    if (monitor is None) is (given["target"] is None):
        raise click.UsageError("give either MONITOR or --target")
    seconds = max(session.timeout_seconds, WAIT_SECONDS)

    async def ask(api: Api) -> dict[str, Any]:
        if monitor is not None:
            return await run_now(api, await find_monitor(api, project, monitor))
        home = await find_project(api, project)
        path = f"{home.path}/monitors/test"
        return dict(await api.send("POST", path, drafted(given), "test the check"))

    result = session.run(ask, seconds)
    if session.as_json:
        print_json(result)
    else:
        word = "up" if result["up"] else "down"
        click.echo(f"{word}: {result['latency_ms']} ms{_told(result)}")
    raise SystemExit(0 if result["up"] else IS_DOWN)


def _told(result: dict[str, Any]) -> str:
    parts = [result.get("msg") or "", *(result.get("conditions") or [])]
    at = f", measured {moment(result['ts'])}" if "ts" in result else ""
    text = shown("; ".join(part for part in parts if part))
    return f"{at}, {text}" if text else at


@command.command("add")
@click.argument("name")
@project_option
@draft_options
@api_command
def add(session: Session, name: str, project: str | None, **given: Any) -> None:
    """Add a monitor. Settings that are not given have the defaults of the installation.

    \b
    Example:
      leadline monitors add Web --target https://example.org/ --interval 60s --tag shop
      leadline monitors add Database --type tcp --target db.example.org:5432
      leadline monitors add Backup --type push --interval 1h --set grace_seconds=600
    Exit status: 0 added, 1 refused or failed, 2 usage error, 130 interrupted.
    """
    body = {"name": name, **drafted(given)}

    async def ask(api: Api) -> dict[str, Any]:
        home = await find_project(api, project)
        return dict(await api.send("POST", f"{home.path}/monitors", body, f"add {name}"))

    made = session.run(ask)
    if session.as_json:
        print_json(made)
        return
    click.echo(f"Added {made['slug']} ({made['type']}, every {_rhythm(made)})")
    if made.get("push_url"):
        click.echo(f"It waits for requests to {made['push_url']}")
