"""leadline check-config"""

from pathlib import Path

import click

from .options import config_option, read_settings


@click.command("check-config")
@config_option
def command(config_path: Path | None) -> None:
    """Read the configuration as `run` would, and say every fault of it.

    \b
    Example:
      leadline check-config --config ./leadline.toml
    Exit status: 0 when it may be used, 2 otherwise.
    """
    read_settings(config_path)
    click.echo("The configuration may be used.")
