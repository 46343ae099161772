"""leadline install"""

import os
from pathlib import Path

import click

from ..config.roles import ProcessRole
from .install_steps import CannotInstall, Installer, installation_of, own_program
from .options import fail


@click.command("install")
@click.option(
    "--role",
    type=click.Choice([role.value for role in ProcessRole]),
    default=ProcessRole.ALL.value,
    show_default=True,
    help="Unit to install: the whole daemon, one role on a shared PostgreSQL, or an agent.",
)
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=Path("/"),
    show_default=True,
    help="Install into this folder, such as an image. The user is created at its first boot.",
)
@click.option(
    "--program",
    type=click.Path(path_type=Path),
    help="The path of the leadline command in the units.  [default: the command of this Python]",
)
@click.option("--dry-run", is_flag=True, help="Print the steps without writing.")
def command(role: str, root: Path, program: Path | None, dry_run: bool) -> None:
    """Create the system user, the folders, the systemd unit and an example configuration.

    Repeating it changes nothing. After an upgrade it replaces the units with those of the new
    version: put changes into a drop-in (`systemctl edit leadline`). A configuration file that
    exists is never changed.

    \b
    Example:
      leadline install
      leadline install --role agent
      leadline install --root /mnt/image --program /opt/leadline/bin/leadline
    Exit status: 0 installed, 1 failed, 2 usage error.
    """
    root = root.resolve()
    is_live = root == Path("/")
    if program is not None and not program.is_absolute():
        raise click.UsageError("--program: must be an absolute path")
    if is_live and not dry_run and os.geteuid() != 0:
        raise fail("only root can install: run it with sudo, or try it with --root DIR")
    try:
        plan = installation_of(role, program or own_program())
        Installer(root, click.echo, is_dry=dry_run).run(plan)
    except CannotInstall as error:
        raise fail(str(error)) from error
    if dry_run:
        click.echo("Dry run: no files written.")
        return
    click.echo(f"Edit {plan.config}, then start it:")
    target = "" if is_live else f"--root={root} "
    now = "--now " if is_live else ""
    reload = "systemctl daemon-reload && " if is_live else ""
    click.echo(f"  {reload}systemctl {target}enable {now}{plan.unit}")
