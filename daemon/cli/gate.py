"""leadline gate check"""

import os
from pathlib import Path
from typing import Final

import click

from . import gate_ci_formats as gate_formats
from .api_client import ApiClient, NoResponse, read_server, refusal, timeout_option, within
from .gate_ci_formats import Format
from .gate_response import NoDecision, PrintedDecision, read_decision
from .gate_text import decision_text
from .options import print_out
from .safe_text import shown_json
from .service_lookup import find_place, project_option, service_option

NO_DECISION: Final = 1


@click.group("gate")
def command() -> None:
    """Ask the release gate whether a service may be released now."""


@command.command("check")
@project_option
@service_option
@click.option("--json", "as_json", is_flag=True, help="Print the decision as the server gave it.")
@click.option(
    "--format",
    "form",
    type=click.Choice([form.value for form in Format]),
    help="Print what that build server reads.",
)
@timeout_option
def check(
    project: str, service: str, as_json: bool, form: str | None, timeout_seconds: float
) -> None:
    """Ask once whether a service may be released now, and end as the gate decided.

    LEADLINE_URL says where Leadline is, LEADLINE_TOKEN holds an API token (the action gate:evaluate
    is enough, with ids; slugs are looked up, which takes a token that is not narrowed), and
    LEADLINE_CA_FILE may name the certificate authorities to trust instead of this host's.
    Nothing is asked twice, no redirect is followed, and no proxy is used.

    --format github prints a workflow command and adds to GITHUB_STEP_SUMMARY and GITHUB_OUTPUT
    (state, action, decision-id); gitlab prints variables for artifacts:reports:dotenv; junit prints
    a test case for each clause. With gitlab and junit the text for people goes to the standard
    error output.

    \b
    Example:
      leadline gate check --project shop --service checkout
      leadline gate check --project $P --service $S --format junit > gate.xml
    Exit status:
      0  ALLOW or WARN
      1  there is no decision: no connection, no permission, no answer in time
      2  BLOCK; or the command was called wrongly, and nothing was asked
      4  NOT_CONFIGURED: there is no policy, and so no decision to act on
    """
    if as_json and form is not None:
        raise click.UsageError("--json and --format exclude each other")
    client = read_server(os.environ).client()
    form_asked = None if form is None else Format(form)
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
    """One request that makes a decision, after those that look up what was given by slug."""
    place = await find_place(client, project, service)
    answer = await client.ask("POST", f"{place.path}/gate", {})
    if answer.status != 200:
        raise NoResponse(refusal(answer))
    return read_decision(answer.body, place.service), answer.body


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
    """To the standard error output, and as the build server reads it."""
    click.echo(f"leadline: {message}", err=True)
    if form is Format.GITHUB:
        print_out(gate_formats.github_command("error", gate_formats.TITLE, message).encode())
    elif form is Format.JUNIT:
        print_out(gate_formats.junit_error(message).encode())


def _add(name: str, text: str) -> None:
    """To the file that the build server names; that it cannot be written does not change what was
    decided."""
    place = os.environ.get(name)
    if not place:
        return
    try:
        with Path(place).open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        click.echo(f"leadline: {name} cannot be written: {error.strerror}", err=True)
