"""leadline gate check"""

import os
from pathlib import Path
from typing import Final

import click

from . import gate_ci_formats as gate_formats
from .api_client import (
    ApiClient,
    BadToken,
    NoResponse,
    read_server,
    refusal,
    timeout_option,
    within,
)
from .gate_ci_formats import Format
from .gate_response import NoDecision, PrintedDecision, read_decision
from .gate_text import decision_text
from .options import print_out
from .safe_text import shown_json
from .service_lookup import find_place, project_option, service_option

NO_DECISION: Final = 1


@click.group("gate")
def command() -> None:
    """Query the release gate."""


@command.command("check")
@project_option
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print the raw JSON response.")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Format]),
    help="Print the format of a build server.",
)
@timeout_option
def check(
    project: str, service: str, as_json: bool, form: str | None, timeout_seconds: float
) -> None:
    """Evaluate the release gate once, and exit with the status of its action.

    LEADLINE_URL is the address of the server and LEADLINE_TOKEN an API token. A token with only
    the action gate:evaluate is enough. LEADLINE_CA_FILE can name the certificate authorities to
    trust instead of those of this host. The command repeats no request, follows no redirect and
    uses no proxy.

    --format github prints a workflow command and appends to GITHUB_STEP_SUMMARY and GITHUB_OUTPUT
    (state, action, decision-id); gitlab prints variables for artifacts:reports:dotenv; junit prints
    a test case for each clause. With gitlab and junit the readable text goes to the standard error
    output.

    \b
    Example:
      leadline gate check --project shop --service checkout
      leadline gate check --project $P --service $S --format junit > gate.xml
    Exit status:
      0  ALLOW or WARN
      1  no decision: no connection, no token, no permission, or a timeout
      2  BLOCK, or a usage error before any request
      4  NOT_CONFIGURED: neither the service nor its project has a policy
    """
    if as_json and form is not None:
        raise click.UsageError("--json and --format exclude each other")
    form_asked = None if form is None else Format(form)
    try:
        client = read_server(os.environ).client()
    except BadToken as error:
        # Status 2 of a usage error would be read as BLOCK.
        _print_no_decision(form_asked, f"no decision: {error.message}")
        raise SystemExit(NO_DECISION) from error
    try:
        decision, body = within(timeout_seconds, lambda: _ask(client, project, service))
    except (NoResponse, NoDecision) as error:
        _print_no_decision(form_asked, f"no decision: {error}")
        raise SystemExit(NO_DECISION) from error
    if as_json:
        print_out(shown_json(body))
    else:
        _print_decision(form_asked, decision)
    raise SystemExit(decision.exit_status)


async def _ask(client: ApiClient, project: str, service: str) -> tuple[PrintedDecision, bytes]:
    """Looks up slugs, then sends the one request that writes a decision."""
    place = await find_place(client, project, service)
    answer = await client.ask("POST", f"{place.path}/gate", {})
    if answer.status != 200:
        raise NoResponse(refusal(answer))
    service_id = None if isinstance(place.service, str) else place.service
    return read_decision(answer.body, service_id), answer.body


def _print_decision(form: Format | None, decision: PrintedDecision) -> None:
    text = "\n".join(decision_text(decision))
    if form is Format.GITHUB:
        print_out(gate_formats.github(decision).encode())
        _add("GITHUB_STEP_SUMMARY", gate_formats.github_summary(decision))
        _add("GITHUB_OUTPUT", gate_formats.github_outputs(decision))
    elif form is Format.GITLAB:
        click.echo(text, err=True)
        print_out(gate_formats.gitlab(decision).encode())
    elif form is Format.JUNIT:
        click.echo(text, err=True)
        print_out(gate_formats.junit(decision).encode())
    else:
        print_out(text.encode())


def _print_no_decision(form: Format | None, message: str) -> None:
    """Prints the error to stderr, and in the format of the build server."""
    click.echo(f"leadline: {message}", err=True)
    if form is Format.GITHUB:
        print_out(gate_formats.github_command("error", gate_formats.TITLE, message).encode())
    elif form is Format.JUNIT:
        print_out(gate_formats.junit_error(message).encode())


def _add(name: str, text: str) -> None:
    """Appends text to the file that an environment variable names, if it is set.

    A write error is printed and does not change the exit status."""
    place = os.environ.get(name)
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        click.echo(f"leadline: {name} cannot be written: {error.strerror}", err=True)
