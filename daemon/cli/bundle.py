"""leadline bundle plan|apply|export|schema|import"""

import os
from collections import Counter
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import click
import msgspec

from ...storage.bundles.rules.bundle import Bundle, read_bundle
from ...storage.bundles.rules.bundle_schema import schema_text
from ...storage.bundles.rules.bundle_yaml import BadText, Text, read_text, write_text
from ...storage.core.refusal import Refused
from ..importers import read_of
from ..importers.import_result import CannotImport
from .api_client import (
    ApiClient,
    NoResponse,
    read_json,
    read_server,
    refusal,
    timeout_option,
    within,
)
from .options import fail, print_out
from .safe_text import shown, shown_json
from .service_lookup import ResourceParam, find_project

CHANGES: Final = 3
_SIGNS: Final = {
    "create": ("+", "green"),
    "update": ("~", "yellow"),
    "orphan": ("-", "red"),
}
_VALUE_LONGEST: Final = 200


class PlannedFieldChange(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    name: str
    from_: Any = msgspec.UNSET
    to: Any = msgspec.UNSET


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    kind: str
    uid: str
    action: str
    fields: list[PlannedFieldChange] = []


class PlanOutput(msgspec.Struct, frozen=True, kw_only=True):
    changes: list[PlannedChange]
    applied: bool


class _Wrong(Exception):
    """The bundle is refused. The message has line and column if they are known."""


bundle_file = click.argument(
    "path", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the raw JSON response.")


@click.group("bundle")
def command() -> None:
    """Keep a project's monitors and services in a file.

    A bundle is YAML that declares the monitors and services of a project. LEADLINE_URL,
    LEADLINE_TOKEN and LEADLINE_CA_FILE select the server and the token, as for
    `leadline gate check`. Plan and apply need the role project_admin.
    """


@command.command("plan")
@bundle_file
@json_option
@click.option("--exit-code", is_flag=True, help=f"Exit with {CHANGES} if changes are pending.")
@timeout_option
def plan(path: Path, as_json: bool, exit_code: bool, timeout_seconds: float) -> None:
    """Print the changes that applying a bundle would make, and write nothing.

    \b
    Example:
      leadline bundle plan shop.yaml --exit-code
    Exit status:
      0  printed
      1  no plan: no connection, no permission, or a timeout
      2  invalid bundle, reported with its position, or a usage error
      3  with --exit-code: changes are pending
    """
    found = _ask("plan", path, timeout_seconds)
    _print_plan(found, as_json)
    if exit_code and any(one.action != "unchanged" for one in found[0].changes):
        raise SystemExit(CHANGES)


@command.command("apply")
@bundle_file
@json_option
@timeout_option
def apply(path: Path, as_json: bool, timeout_seconds: float) -> None:
    """Apply a bundle to its project, atomically.

    Orphans, objects that the bundle no longer names, are disabled and never deleted.

    \b
    Example:
      leadline bundle apply shop.yaml
    Exit status:
      0  applied
      1  outcome unknown: no connection, no permission, or a timeout
      2  invalid bundle, reported with its position and not applied, or a usage error
    """
    _print_plan(_ask("apply", path, timeout_seconds), as_json)


@command.command("export")
@click.option("--organization", type=ResourceParam(), help="Organization id or slug.")
@click.option("--project", type=ResourceParam(), required=True, help="Project id or slug.")
@timeout_option
def export(organization: str | None, project: str, timeout_seconds: float) -> None:
    """Print a project's monitors and services as a bundle.

    Applied to the same project it changes nothing. Secrets are blank, which keeps the stored
    values. Objects of file providers are omitted.

    \b
    Example:
      leadline bundle export --project shop > shop.yaml
    Exit status: 0 printed, 1 failed, 2 usage error.
    """
    client = read_server(os.environ).client()

    async def ask() -> dict[str, Any]:
        where = await find_project(client, project, organization)
        answer = await client.ask("GET", f"/projects/{where}/bundle")
        found = read_json(answer.body, dict[str, Any])
        if answer.status != 200 or found is None:
            raise NoResponse(refusal(answer))
        return found

    try:
        document = within(timeout_seconds, ask)
    except NoResponse as error:
        raise fail(str(error)) from error
    print_out(write_text(document).encode())


@command.command("schema")
def schema() -> None:
    """Print the JSON Schema of bundles, for editors.

    \b
    Example:
      leadline bundle schema > bundle.schema.json
      # and in the first line of a bundle:
      # yaml-language-server: $schema=bundle.schema.json
    """
    print_out(schema_text().encode())


@command.command("import")
@click.argument("kind", type=click.Choice(["kuma", "gatus", "healthchecks", "blackbox"]))
@click.argument(
    "path", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
@click.option("--organization", required=True, help="Organization slug.")
@click.option("--project", required=True, help="Project slug.")
@click.option(
    "--modules",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="For blackbox: the exporter's configuration.",
)
def import_(kind: str, path: Path, organization: str, project: str, modules: Path | None) -> None:
    """Convert the configuration of another tool to a bundle, and report what is not supported.

    \b
    kuma          a backup of Uptime Kuma (JSON), or the kuma.db of version 2
    gatus         the configuration of Gatus
    healthchecks  the response of GET /api/v3/checks/ of Healthchecks
    blackbox      prometheus.yml or a file of targets, for the blackbox exporter
    The bundle goes to the standard output, the report to the standard error output. Secrets are
    not imported.

    \b
    Example:
      leadline bundle import kuma kuma.db --organization acme --project shop > shop.yaml
    Exit status: 0 done, 1 the file is not from that tool, 2 usage error.
    """
    try:
        found = read_of(kind, path, modules)
    except (CannotImport, OSError) as error:
        raise fail(f"{path}: {error}") from error
    document = {
        "format": 1,
        "organization": organization,
        "project": project,
        "monitors": found.monitors,
    }
    print_out(write_text(document).encode())
    for note in found.notes:
        sign = "~" if note.is_kept else "-"
        word = "without" if note.is_kept else "skipped:"
        click.echo(f"{sign} {shown(note.name, 100)}: {word} {'; '.join(note.lost)}", err=True)
    for text in (*found.unused, *found.general):
        click.echo(f"  {shown(text, 300)}", err=True)
    left_out = sum(not note.is_kept for note in found.notes)
    click.echo(f"{len(found.monitors)} imported, {left_out} skipped", err=True)


def _ask(verb: str, path: Path, timeout_seconds: float) -> tuple[PlanOutput, bytes]:
    """Returns the plan and its JSON. Exits with 2 for an invalid bundle, else with 1 on failure."""
    try:
        text, document, bundle = _read(path)
        client = read_server(os.environ).client()
        return within(timeout_seconds, lambda: _send(client, verb, text, document, bundle))
    except _Wrong as error:
        click.echo(f"leadline: {path}: {error}", err=True)
        raise SystemExit(2) from error
    except NoResponse as error:
        raise fail(str(error)) from error


def _read(path: Path) -> tuple[Text, dict[str, Any], Bundle]:
    try:
        text = read_text(path.read_bytes().decode())
    except OSError as error:
        raise _Wrong(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _Wrong("is not UTF-8") from error
    except BadText as error:
        raise _Wrong(str(error)) from error
    try:
        return text, text.document, read_bundle(text.document)
    except Refused as error:
        raise _Wrong(f"{text.place_of(error.field)}: {error}") from error


async def _send(
    client: ApiClient, verb: str, text: Text, document: dict[str, Any], bundle: Bundle
) -> tuple[PlanOutput, bytes]:
    where: UUID = await find_project(client, bundle.project, bundle.organization)
    answer = await client.ask("POST", f"/projects/{where}/bundle/{verb}", document)
    if answer.status in (400, 409) and answer.error is not None:
        field = answer.error.partition(": ")[0]
        raise _Wrong(f"{text.place_of(field)}: {answer.error}")
    found = read_json(answer.body, PlanOutput)
    if answer.status != 200 or found is None or found.applied is not (verb == "apply"):
        raise NoResponse(refusal(answer))
    return found, answer.body


def _print_plan(found: tuple[PlanOutput, bytes], as_json: bool) -> None:
    plan_, data = found
    if as_json:
        print_out(shown_json(data))
        return
    for one in plan_.changes:
        if one.action != "unchanged" or one.fields:
            click.echo(_plan_text(one))
    count = Counter(one.action for one in plan_.changes)
    done = "Applied" if plan_.applied else "Planned"
    words = {
        "create": "created",
        "update": "updated",
        "orphan": "disabled as orphans",
        "unchanged": "unchanged",
    }
    click.echo(f"{done}: " + ", ".join(f"{count[act]} {said}" for act, said in words.items()))


def _plan_text(change: PlannedChange) -> str:
    sign, colour = _SIGNS.get(change.action, ("=", "white"))
    lines = [click.style(f"{sign} {change.kind} {shown(change.uid, 64)}", fg=colour)]
    if change.action != "create":
        lines += [f"    {_of_field(each)}" for each in change.fields]
    return "\n".join(lines)


def _of_field(field: PlannedFieldChange) -> str:
    name = shown(field.name, 100)
    if field.to is msgspec.UNSET:
        return f"{name}: {_value(field.from_)} removed"
    if field.from_ is msgspec.UNSET:
        return f"{name}: {_value(field.to)} added"
    return f"{name}: {_value(field.from_)} → {_value(field.to)}"


def _value(value: Any) -> str:
    return shown(msgspec.json.encode(value).decode(), _VALUE_LONGEST)
