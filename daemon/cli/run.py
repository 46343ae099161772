"""leadline run"""

from pathlib import Path

import click
import trio

from ...storage.embedded import CannotRun
from ...storage.migrate import CannotMigrate
from ...storage.rules.refusal import Unavailable
from .. import config, logs
from ..roles import Role
from ..service import run_daemon
from .options import config_option, fail, first_cause, read_settings


@click.command("run")
@config_option
@click.option(
    "--role",
    type=click.Choice([role.value for role in Role]),
    default=Role.ALL.value,
    show_default=True,
    help="Which parts this process runs.",
)
def command(config_path: Path | None, role: str) -> None:
    """Run the daemon until SIGTERM.

    Without database.dsn it brings its own PostgreSQL, which lives in data_dir.

    \b
    Example:
      leadline run --config /etc/leadline/leadline.toml
      LEADLINE_DATA_DIR=./data leadline run
    """
    settings = read_settings(config_path)
    logs.configure(settings.log)
    try:
        trio.run(run_daemon, settings, Role(role))
    except* (CannotRun, CannotMigrate, Unavailable, config.BadConfig, OSError) as group:
        raise fail(str(first_cause(group))) from group
    except* KeyboardInterrupt:
        raise SystemExit(130) from None
