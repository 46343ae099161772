"""leadline slo export|import"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from ...http.importers.import_result import CannotImport
from ...http.importers.slo.bundle import read_files, read_objectives, slo_bundle
from ...http.importers.slo.openslo_export import openslo_documents
from ...storage.bundles.rules.bundle_yaml import write_text
from .api_client import timeout_option
from .options import fail, print_out
from .safe_text import shown
from .service_lookup import ResourceParam, exported_bundle

_FILE: Final = click.Path(path_type=Path, exists=True, dir_okay=False)
_LONGEST: Final = 300


@click.group("slo")
def command() -> None:
    """Exchange objectives with other tools."""


@command.command("export")
@click.option("--organization", type=ResourceParam(), help="Organization id or slug.")
@click.option("--project", type=ResourceParam(), required=True, help="Project id or slug.")
@timeout_option
def export(organization: str | None, project: str, timeout_seconds: float) -> None:
    """Print the objectives of a project as OpenSLO v1.

    They belong to its services and monitors, and to the project. Objects of file providers are
    omitted. The indicator is good time to measured time. Burn rules are left out and listed on
    the standard error output, because a condition of OpenSLO has one window.

    \b
    Example:
      leadline slo export --project shop > shop.openslo.yaml
    Exit status: 0 printed, 1 failed, 2 usage error.
    """
    found = openslo_documents(exported_bundle(organization, project, timeout_seconds))
    print_out("".join(f"---\n{write_text(one)}" for one in found.documents).encode())
    _print_lines("~", found.lost)
    many = sum(one["kind"] == "SLO" for one in found.documents)
    click.echo(f"{many} objectives exported", err=True)


@command.command("import")
@click.argument("paths", metavar="FILE...", type=_FILE, nargs=-1, required=True)
@click.option("--organization", required=True, help="Organization slug.")
@click.option("--project", required=True, help="Project slug.")
@click.option(
    "--sli",
    "named",
    multiple=True,
    metavar="SLO=MONITOR[,MONITOR]",
    help="Monitors that measure an objective, by uid, slug or id. SLO can be SERVICE/SLO.",
)
@click.option("--prometheus", default="", help="Address of the server that answers queries.")
def import_(
    paths: Sequence[Path], organization: str, project: str, named: Sequence[str], prometheus: str
) -> None:
    """Convert objectives of OpenSLO v1, Sloth or Pyrra to a bundle, and report what is left out.

    The bundle goes to the standard output, the report to the standard error output: "-" is left
    out, "~" is imported without it. An objective over a window other than 24h, 7d, 30d and 90d, or
    of an indicator that counts events, is left out. With --sli a monitor of the project measures
    it.

    \b
    Example:
      leadline slo import slos.yaml --organization acme --project shop \\
        --sli requests-availability=front > slos.bundle.yaml
    Exit status: 0 done, 1 a file cannot be read, 2 usage error.
    """
    measured_by: dict[str, list[str]] = {}
    for one in named:
        name, found_sign, monitors = one.partition("=")
        uids = [uid.strip() for uid in monitors.split(",") if uid.strip()]
        if not name or not found_sign or not uids:
            raise click.UsageError("--sli: must be SLO=MONITOR, or SLO=MONITOR,MONITOR")
        measured_by[name] = uids
    try:
        found = read_objectives(read_files(paths))
        document = slo_bundle(found, organization, project, measured_by, prometheus)
    except (CannotImport, OSError) as error:
        raise fail(str(error)) from error
    print_out(write_text(document).encode())
    _print_lines("-", found.lost)
    _print_lines("~", found.kept)
    many = sum(len(one["sla_targets"]) for one in document.get("services", {}).values())
    click.echo(f"{many} objectives imported, {len(found.lost)} left out", err=True)


def _print_lines(sign: str, lines: Sequence[str]) -> None:
    for line in lines:
        click.echo(f"{sign} {shown(line, _LONGEST)}", err=True)
