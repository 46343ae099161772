"""leadline bundle plan|apply|export|schema|import"""

import math
import os
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import UUID

import click
import msgspec

from ...storage.bundles.rules.bundle import FORMATS, SECTIONS, Bundle, read_bundle
from ...storage.bundles.rules.bundle_diff import MANAGED_BY
from ...storage.bundles.rules.bundle_owner import name_fault
from ...storage.bundles.rules.bundle_schema import schema_text
from ...storage.bundles.rules.bundle_yaml import BadText, Text, read_text, write_text
from ...storage.core.refusal import Refused
from .api_client import (
    ApiClient,
    DurationParam,
    NoResponse,
    read_json,
    read_server,
    refusal,
    timeout_option,
    within,
)
from .bundle_import import import_
from .bundle_wait import ApplicationFailed, in_time, result_of
from .options import fail, print_out
from .safe_text import shown, shown_json
from .service_lookup import ResourceParam, exported_bundle, find_project

OWNERS: Final = 2
CHANGES: Final = 3
RESPOND_ASYNC: Final = "respond-async"
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

    @property
    def is_taken_over(self) -> bool:
        return any(one.name == MANAGED_BY for one in self.fields)


class PlanOutput(msgspec.Struct, frozen=True, kw_only=True):
    changes: list[PlannedChange]
    applied: bool


class _Wrong(Exception):
    """The bundle is refused. The message has line and column if they are known."""


@dataclass(frozen=True, slots=True)
class BundleOptions:
    """Name of the bundle, and whether it takes over objects of people and of other bundles.

    `sections` are those of the file to send; all of them if it is empty.
    """

    name: str
    take_over: bool
    sections: tuple[str, ...] = ()

    @property
    def query(self) -> str:
        take_over = "&take_over=true" if self.take_over else ""
        return f"?name={self.name}{take_over}"


bundle_file = click.argument(
    "path", metavar="FILE", type=click.Path(path_type=Path, exists=True, dir_okay=False)
)
name_option = click.option(
    "--name", help="Name of the bundle in its project.  [default: the file name without its ending]"
)
take_over_option = click.option(
    "--take-over",
    is_flag=True,
    help="Manage objects that people created or that another bundle manages.",
)
section_option = click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice(list(SECTIONS)),
    help="Use only this section of a file of format 3; repeat it for several.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the raw JSON response.")


@click.group("bundle")
def command() -> None:
    """Keep a project in a file: monitors, services, on-call, maintenance, pages.

    A bundle is YAML that declares the objects of a project. LEADLINE_URL,
    LEADLINE_TOKEN and LEADLINE_CA_FILE select the server and the token, as for
    `leadline gate check`. Plan and apply need the role project_admin.

    A project can have several bundles, each with its name. An object that people created, or that
    another bundle manages, stays with its owner unless --take-over is given.
    """


@command.command("plan")
@bundle_file
@name_option
@take_over_option
@section_option
@json_option
@click.option(
    "--exit-code",
    is_flag=True,
    help=f"Exit with {OWNERS} if an owner would change, else {CHANGES} if changes are pending.",
)
@timeout_option
def plan(
    path: Path,
    name: str | None,
    take_over: bool,
    sections: tuple[str, ...],
    as_json: bool,
    exit_code: bool,
    timeout_seconds: float,
) -> None:
    """Print the changes that applying a bundle would make, and write nothing.

    \b
    Example:
      leadline bundle plan shop.yaml --exit-code
    Exit status:
      0  printed
      1  no plan: no connection, no permission, or a timeout
      2  invalid bundle, reported with its position, or a usage error;
         with --exit-code: an existing object would get another owner
      3  with --exit-code: other changes are pending
    """
    options = _options(path, name, sections, take_over=take_over)
    found = _ask("plan", path, options, timeout_seconds)
    _print_plan(found, as_json)
    if exit_code and any(one.is_taken_over for one in found[0].changes):
        raise SystemExit(OWNERS)
    if exit_code and any(one.action != "unchanged" for one in found[0].changes):
        raise SystemExit(CHANGES)


@command.command("apply")
@bundle_file
@name_option
@take_over_option
@section_option
@json_option
@click.option(
    "--timeout",
    "timeout_seconds",
    type=DurationParam(),
    help="Longest wait, from 1s to 5m; the server continues after it.  [default: no limit]",
)
def apply(
    path: Path,
    name: str | None,
    take_over: bool,
    sections: tuple[str, ...],
    as_json: bool,
    timeout_seconds: float | None,
) -> None:
    """Apply a bundle to its project, atomically.

    Of orphans, objects that the bundle no longer names, monitors and services are disabled,
    maintenance series end, webhooks are deleted with their waiting deliveries, and the rest stays
    as it is. A person who is not a member is invited. The server applies the bundle in the
    background, and continues if the command is interrupted.

    \b
    Example:
      leadline bundle apply shop.yaml
    Exit status:
      0  applied
      1  not applied or unknown: no connection, no permission, or a timeout
      2  invalid bundle, reported with its position and not applied, or a usage error
    """
    options = _options(path, name, sections, take_over=take_over)
    seconds = math.inf if timeout_seconds is None else timeout_seconds
    _print_plan(_ask("apply", path, options, seconds), as_json)


def _options(
    path: Path, name: str | None, sections: tuple[str, ...], *, take_over: bool
) -> BundleOptions:
    given = path.stem if name is None else name
    fault = name_fault(given)
    if fault is not None:
        hint = "" if name is not None else ": the file name gives none that is valid"
        raise click.UsageError(f"--name{hint}: {fault}")
    return BundleOptions(given, take_over, sections)


@command.command("export")
@click.option("--organization", type=ResourceParam(), help="Organization id or slug.")
@click.option("--project", type=ResourceParam(), required=True, help="Project id or slug.")
@timeout_option
def export(organization: str | None, project: str, timeout_seconds: float) -> None:
    """Print a project as a bundle.

    Applied to the same project it changes nothing. Secrets are blank, which keeps the stored
    values. Objects of file providers are omitted.

    \b
    Example:
      leadline bundle export --project shop > shop.yaml
    Exit status: 0 printed, 1 failed, 2 usage error.
    """
    document = exported_bundle(organization, project, timeout_seconds)
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


command.add_command(import_)


def _ask(
    verb: str, path: Path, options: BundleOptions, timeout_seconds: float
) -> tuple[PlanOutput, bytes]:
    """Returns the plan and its JSON. Exits with 2 for an invalid bundle, else with 1 on failure."""
    try:
        text, document, bundle = _read(path, options.sections)
        client = read_server(os.environ).client()
        return within(
            math.inf if verb == "apply" else timeout_seconds,
            lambda: _send(client, verb, options, timeout_seconds, text, document, bundle),
        )
    except _Wrong as error:
        click.echo(f"leadline: {path}: {error}", err=True)
        raise SystemExit(2) from error
    except NoResponse as error:
        raise fail(str(error)) from error


def _read(path: Path, sections: tuple[str, ...]) -> tuple[Text, dict[str, Any], Bundle]:
    try:
        text = read_text(path.read_bytes().decode())
    except OSError as error:
        raise _Wrong(f"cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _Wrong("is not UTF-8") from error
    except BadText as error:
        raise _Wrong(str(error)) from error
    try:
        bundle = read_bundle(text.document)
        if not sections:
            return text, text.document, bundle
        if bundle.format < FORMATS[-1]:
            raise _Wrong(f"--section needs format {FORMATS[-1]}")
        left_out = {name for name in SECTIONS if name not in sections}
        document = {name: one for name, one in text.document.items() if name not in left_out}
        return text, document, read_bundle(document)
    except Refused as error:
        raise _Wrong(f"{text.place_of(error.field)}: {error}") from error


async def _send(
    client: ApiClient,
    verb: str,
    options: BundleOptions,
    seconds: float,
    text: Text,
    document: dict[str, Any],
    bundle: Bundle,
) -> tuple[PlanOutput, bytes]:
    where: UUID = await find_project(client, bundle.project, bundle.organization)
    path = f"/projects/{where}/bundle/{verb}{options.query}"
    if verb == "apply":
        answer = await in_time(client, "POST", path, body=document, prefer=RESPOND_ASYNC)
    else:
        # The timeout of the command bounds the whole of it.
        answer = await client.ask("POST", path, body=document)
    error = answer.error
    if error is not None and (answer.status == 400 or _is_about_entry(error)):
        raise _pointed_at(text, error)
    body, status = answer.body, answer.status
    if status == 202:
        try:
            body, status = await result_of(client, answer, seconds), 200
        except ApplicationFailed as failed:
            error = shown(str(failed))
            if _is_about_entry(error):
                raise _pointed_at(text, error) from failed
            raise NoResponse(f"not applied: {error}") from failed
    found = read_json(body, PlanOutput)
    if status != 200 or found is None or found.applied is not (verb == "apply"):
        raise NoResponse(refusal(answer))
    return found, body


def _is_about_entry(error: str) -> bool:
    """Returns whether an error begins with the path of a field of the bundle."""
    return re.match(rf"({'|'.join(SECTIONS)}|organization|project)[.:]", error) is not None


def _pointed_at(text: Text, error: str) -> _Wrong:
    return _Wrong(f"{text.place_of(error.partition(': ')[0])}: {error}")


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
        "orphan": "orphaned",
        "unchanged": "unchanged",
    }
    parts = [f"{count[act]} {said}" for act, said in words.items()]
    taken_over = sum(one.is_taken_over for one in plan_.changes)
    if taken_over:
        parts.append(f"{taken_over} with another owner")
    click.echo(f"{done}: {', '.join(parts)}")


def _plan_text(change: PlannedChange) -> str:
    sign, colour = _SIGNS.get(change.action, ("=", "white"))
    lines = [click.style(f"{sign} {change.kind} {shown(change.uid, 64)}", fg=colour)]
    if change.action != "create":
        lines += [f"    {_of_field(each)}" for each in change.fields]
    return "\n".join(lines)


def _of_field(field: PlannedFieldChange) -> str:
    name = shown(field.name, 100)
    if name == "deleted":
        return "deleted with its waiting deliveries"
    if field.to is msgspec.UNSET:
        return f"{name}: {_value(field.from_)} removed"
    if field.from_ is msgspec.UNSET:
        return f"{name}: {_value(field.to)} added"
    return f"{name}: {_value(field.from_)} → {_value(field.to)}"


def _value(value: Any) -> str:
    return shown(msgspec.json.encode(value).decode(), _VALUE_LONGEST)
