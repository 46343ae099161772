"""leadline bundle import"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import click

from ...http.importers import read_of
from ...http.importers.import_result import CannotImport, ImportResult
from ...http.importers.on_call import TOOLS, read_on_call
from ...http.importers.on_call.bundle import contact_lines, on_call_bundle
from ...http.importers.on_call.document import OnCallImport
from ...storage.bundles.rules.bundle_yaml import write_text
from ...storage.core.instant import Instant, from_datetime
from .options import fail, print_out
from .safe_text import shown

_MONITORS: Final = ("kuma", "gatus", "healthchecks", "blackbox")
_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("import")
@click.argument("kind", type=click.Choice([*_MONITORS, *TOOLS]))
@click.argument("path", metavar="FILE", type=_FILE)
@click.option("--organization", required=True, help="Organization slug.")
@click.option("--project", required=True, help="Project slug.")
@click.option("--modules", type=_FILE, help="For blackbox: the exporter's configuration.")
def import_(kind: str, path: Path, organization: str, project: str, modules: Path | None) -> None:
    """Convert the configuration of another tool to a bundle, and report what is not supported.

    \b
    kuma            a backup of Uptime Kuma (JSON), or the kuma.db of version 2
    gatus           the configuration of Gatus
    healthchecks    the response of GET /api/v3/checks/ of Healthchecks
    blackbox        prometheus.yml or a file of targets, for the blackbox exporter
    pagerduty       schedules, overrides and escalation policies of PagerDuty, as for the others
    opsgenie        those of Opsgenie
    grafana-oncall  those of Grafana OnCall, with the default route
    goalert         those of GoAlert
    The bundle goes to the standard output, the report to the standard error output. Secrets are not
    imported. Contact methods are imported as proposals, which their owners confirm.

    \b
    Example:
      leadline bundle import kuma kuma.db --organization acme --project shop > shop.yaml
    Exit status: 0 done, 1 the file is not from that tool, 2 usage error.
    """
    try:
        if kind in TOOLS:
            _print_on_call(read_on_call(kind, path), organization, project)
        else:
            _print_monitors(read_of(kind, path, modules), organization, project)
    except (CannotImport, OSError) as error:
        raise fail(f"{path}: {error}") from error


def _print_monitors(found: ImportResult, organization: str, project: str) -> None:
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


def _print_on_call(found: OnCallImport, organization: str, project: str) -> None:
    document: dict[str, Any] = on_call_bundle(found, organization, project, _now())
    print_out(write_text(document).encode())
    for text in found.lost:
        click.echo(f"- {shown(text, 300)}", err=True)
    for text in found.unused:
        click.echo(f"  {shown(text, 300)}", err=True)
    for text in contact_lines(found):
        click.echo(f"  {shown(text, 300)}", err=True)
    counts = f"{len(found.schedules)} schedules, {len(found.policies)} escalation policies"
    click.echo(f"{len(found.people)} people, {counts} imported", err=True)


def _now() -> Instant:
    return from_datetime(datetime.now(UTC))
