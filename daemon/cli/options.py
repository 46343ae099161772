"""What several commands share: where the configuration is, how faults are told, what is printed."""

import os
from pathlib import Path

import click

from ..config import load as config
from ..config.config_schema import Settings

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file.  [default: $LEADLINE_CONFIG, else /etc/leadline/leadline.toml]",
)


def read_settings(path: Path | None) -> Settings:
    """The settings; every fault goes to the standard error output, a line each, and exit 2."""
    try:
        return config.load(path, os.environ)
    except config.BadConfig as error:
        for fault in error.faults:
            click.echo(f"leadline: {fault}", err=True)
        raise SystemExit(2) from error


def fail(message: str) -> SystemExit:
    """One line that says what is wrong; to be raised."""
    click.echo(f"leadline: {message}", err=True)
    return SystemExit(1)


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What a person is told of a group whose members all say why nothing was done."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def print_out(data: bytes) -> None:
    """In UTF-8 whatever this host's locale is, as files are made of it. Where it cannot be written,
    the command has failed: who reads the file would read half of it."""
    try:
        click.echo(data.rstrip(b"\n"))
    except OSError as error:
        raise fail(f"the output cannot be written: {error.strerror}") from error
