"""leadline run"""

import os
from pathlib import Path

import click
import trio

from ..config import load as config
from ..config import logs
from ..config.config_schema import Settings
from ..config.roles import ProcessRole, role_faults
from ..runtime.gc_tuning import importing
from .options import (
    config_option,
    fail,
    fail_configuration,
    first_cause,
    read_settings,
    role_option,
)


@click.command("run")
@config_option
@role_option
def command(config_path: Path | None, role: str) -> None:
    """Run the daemon until SIGTERM.

    Without database.dsn the role all runs an embedded PostgreSQL in data_dir. The roles api,
    scheduler and worker need database.dsn. An agent has no database: it fetches its jobs from
    pull.server_url, and buffers its results in data_dir until the server accepts them.

    \b
    Example:
      leadline run --config /etc/leadline/leadline.toml
      LEADLINE_DATA_DIR=./data leadline run
      leadline run --role agent --config /etc/leadline/agent.toml
    Exit status: 0 after SIGTERM, 2 for a fault of the configuration, 1 for any other fault.
    """
    settings = read_settings(config_path)
    logs.configure(settings.log)
    chosen = ProcessRole(role)
    faults = role_faults(settings, chosen)
    if faults:
        raise fail_configuration(faults)
    try:
        if chosen is ProcessRole.AGENT:
            _run_agent(settings)
        else:
            _run_daemon(settings, chosen)
    except* KeyboardInterrupt:
        raise SystemExit(130) from None


def _run_daemon(settings: Settings, role: ProcessRole) -> None:
    # Imported here, since an agent needs no database modules and often has little memory.
    with importing():
        from ...storage.core.refusal import Unavailable
        from ...storage.engine.embedded_postgres import CannotRun
        from ...storage.engine.migrate import CannotMigrate
        from ..process.daemon_main import run_daemon

    try:
        trio.run(run_daemon, settings, role)
    except* config.BadConfig as group:
        raise fail_configuration(str(first_cause(group)).splitlines()) from group
    except* (CannotRun, CannotMigrate, Unavailable, OSError) as group:
        raise fail(str(first_cause(group))) from group


def _run_agent(settings: Settings) -> None:
    # Imported here, since no other role needs it.
    from ..agent.agent_config import BadAgentConfig, read_place
    from ..agent.agent_main import run_agent
    from ..agent.ring_buffer import RingInUse

    folder = Path(settings.data_dir) if settings.data_dir else config.default_data_dir()
    try:
        place = read_place(settings, os.environ, folder)
    except BadAgentConfig as error:
        raise fail_configuration(error.faults) from error
    try:
        trio.run(run_agent, settings, place)
    except* (RingInUse, OSError) as group:
        raise fail(str(first_cause(group))) from group
