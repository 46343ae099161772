"""leadline change record"""

import os
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import click
import msgspec

from ...storage.core.instant import from_text
from .api_client import (
    ApiClient,
    ApiResponse,
    NoResponse,
    read_json,
    read_server,
    refusal,
    timeout_option,
    within,
)
from .options import print_out
from .safe_text import shown, shown_json
from .service_lookup import ResourceNotFound, ServiceRef, find_place, project_option, service_option

KINDS: Final = ("deploy", "rollback", "flag")
PHASES: Final = ("started", "succeeded", "failed", "cancelled")
REFUSED: Final = 2
UNANSWERED: Final = 1
# Statuses that refuse the change, and statuses that refuse the caller. Others are transport errors.
_REFUSALS: Final = frozenset({400, 404, 409})
_TURNED_AWAY: Final = frozenset({401, 403, 429})


class RefusedChange(Exception):
    """The server refused the change and did not record it."""


class NotRecorded(Exception):
    """The change is not recorded: the lookup failed, or the server refused the caller."""


class PrintedChange(msgspec.Struct, frozen=True, kw_only=True):
    """Stored phase of a change. Other fields of the response are ignored."""

    id: UUID
    service_id: UUID
    source: str
    external_id: str
    kind: str
    phase: str
    occurred_at: str


class RecordResponse(msgspec.Struct, frozen=True, kw_only=True):
    replayed: bool
    change: PrintedChange


class TextParam(click.ParamType[str]):
    """Option value of UTF-8 text. With `is_name` it must not be blank."""

    name = "text"

    def __init__(self, *, is_name: bool = False) -> None:
        self._is_name = is_name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(value)
        try:
            text.encode()
        except UnicodeEncodeError:
            self.fail("must be UTF-8", param, ctx)
        if self._is_name and not text.strip():
            self.fail("must not be blank", param, ctx)
        return text


class InstantText(click.ParamType[str]):
    """Option value of an RFC 3339 instant."""

    name = "instant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            from_text(str(value))
        except ValueError:
            example = datetime.now(UTC).isoformat(timespec="seconds")
            self.fail(f"must be an instant with an offset, such as {example}", param, ctx)
        return str(value)


@click.group("change")
def command() -> None:
    """Record changes of a service."""


@command.command("record")
@project_option
@service_option
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Kind of change.")
@click.option("--phase", type=click.Choice(PHASES), required=True, help="Phase of the change.")
@click.option(
    "--source",
    type=TextParam(is_name=True),
    required=True,
    help="Source system, such as github.",
)
@click.option(
    "--external-id",
    type=TextParam(is_name=True),
    required=True,
    help="Id of the change in the source system, such as the id of a run.",
)
@click.option("--ref", type=TextParam(), default="", help="Version, tag or commit.")
@click.option("--url", type=TextParam(), default="", help="Link to the change (https).")
@click.option("--decision", type=click.UUID, help="Id of the gate decision for the change.")
@click.option("--occurred-at", type=InstantText(), help="Instant of the phase.  [default: now]")
@click.option("--json", "as_json", is_flag=True, help="Print the raw JSON response.")
@timeout_option
def record(project: str, service: str, as_json: bool, timeout_seconds: float, **given: Any) -> None:
    """Record the start or the end of a change.

    LEADLINE_URL, LEADLINE_TOKEN and LEADLINE_CA_FILE select the server and the token, as for
    `leadline gate check`. With ids, a token with only the action change:record is enough.
    The command can be repeated: a phase that is already recorded with the same values is not
    recorded again. An empty --ref or --url is omitted.

    \b
    Example:
      leadline change record --project shop --service checkout --kind deploy \\
        --phase started --source github --external-id 4711 --ref v1.4.2
    Exit status:
      0  recorded now or earlier
      1  not recorded or unknown: no connection, no permission, or a timeout
      2  refused, such as a phase after the end, or a usage error before any request
    """
    client = read_server(os.environ).client()
    body = _body(given)
    try:
        recorded, data = within(timeout_seconds, lambda: _ask(client, project, service, body))
    except (RefusedChange, ResourceNotFound) as error:
        click.echo(f"leadline: refused: {error}", err=True)
        raise SystemExit(REFUSED) from error
    except NotRecorded as error:
        click.echo(f"leadline: not recorded: {error}", err=True)
        raise SystemExit(UNANSWERED) from error
    except NoResponse as error:
        click.echo(f"leadline: outcome unknown: {error}", err=True)
        raise SystemExit(UNANSWERED) from error
    print_out(shown_json(data) if as_json else _response_text(recorded).encode())


def _body(given: dict[str, Any]) -> dict[str, str]:
    """Returns the request body: the options that have a value, by their JSON names."""
    fields = {**given, "decision_id": given["decision"]}
    del fields["decision"]
    return {name: str(value) for name, value in fields.items() if value not in (None, "")}


async def _ask(
    client: ApiClient, project: str, service: str, body: dict[str, str]
) -> tuple[RecordResponse, bytes]:
    try:
        place = await find_place(client, project, service)
    except ResourceNotFound:
        raise
    except NoResponse as error:
        raise NotRecorded(str(error)) from error
    answer = await client.ask("POST", f"{place.path}/changes", body)
    if answer.status in _REFUSALS and answer.error is not None:
        raise RefusedChange(refusal(answer))
    if answer.status in _TURNED_AWAY or 300 <= answer.status < 400:
        raise NotRecorded(refusal(answer))
    if answer.status not in (200, 201):
        raise NoResponse(refusal(answer))
    return _read(answer, place, body), answer.body


def _read(answer: ApiResponse, place: ServiceRef, body: dict[str, str]) -> RecordResponse:
    """Decodes the response. Raises NoResponse unless it reports the phase that was sent."""
    recorded = read_json(answer.body, RecordResponse)
    if recorded is None:
        raise NoResponse("the response is not a recorded change")
    change = recorded.change
    kept = (change.kind, change.phase)
    if kept != (body["kind"], body["phase"]) or not place.is_service(change.service_id):
        raise NoResponse("the response is for another change")
    if recorded.replayed != (answer.status == 200):
        raise NoResponse("the status of the response contradicts its body")
    return recorded


def _response_text(recorded: RecordResponse) -> str:
    change = recorded.change
    word = "Already recorded" if recorded.replayed else "Recorded"
    named = f"{shown(change.external_id, 128)} of {shown(change.source, 64)}"
    at = shown(change.occurred_at, 40)
    return f"{word}: {change.kind} {named} {change.phase} at {at}\nphase {change.id}"
