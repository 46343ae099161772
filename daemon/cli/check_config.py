"""leadline check-config"""

import os
from pathlib import Path

import click

from ..config.config_schema import Settings
from ..config.load import default_data_dir
from ..config.roles import ProcessRole, role_faults
from .options import config_option, fail_configuration, read_settings, role_option


@click.command("check-config")
@config_option
@role_option
def command(config_path: Path | None, role: str) -> None:
    """Read the configuration as `run` with the same role would, and print every fault.

    \b
    Example:
      leadline check-config --config ./leadline.toml
      leadline check-config --role worker --config ./leadline.toml
    Exit status: 0 if the configuration is valid, 2 otherwise.
    """
    settings = read_settings(config_path)
    chosen = ProcessRole(role)
    faults = _agent_faults(settings) if chosen is ProcessRole.AGENT else ()
    faults = (*role_faults(settings, chosen), *faults)
    if faults:
        raise fail_configuration(faults)
    click.echo("The configuration is valid.")


def _agent_faults(settings: Settings) -> tuple[str, ...]:
    # Imported here, since no other role needs it.
    from ..agent.agent_config import BadAgentConfig, read_place

    try:
        read_place(settings, os.environ, default_data_dir())
    except BadAgentConfig as error:
        return tuple(error.faults)
    return ()
