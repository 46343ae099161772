"""Options, configuration loading and output that the commands share."""

import os
from collections.abc import Iterable
from pathlib import Path

import click

from ..config import load as config
from ..config.config_schema import Settings
from ..config.roles import ProcessRole

config_option = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The configuration file.  [default: $LEADLINE_CONFIG, else /etc/leadline/leadline.toml]",
)

role_option = click.option(
    "--role",
    type=click.Choice([role.value for role in ProcessRole]),
    default=ProcessRole.ALL.value,
    show_default=True,
    help="Role of this process.",
)


def read_settings(path: Path | None) -> Settings:
    """Returns the settings. Prints each fault as a line to stderr and exits with 2 otherwise."""
    try:
        return config.load(path, os.environ)
    except config.BadConfig as error:
        raise fail_configuration(error.faults) from error


def fail_configuration(faults: Iterable[str]) -> SystemExit:
    """Prints each fault of the configuration as a line. The caller raises the result: exit 2."""
    for fault in faults:
        click.echo(f"leadline: {fault}", err=True)
    return SystemExit(2)


def fail(message: str) -> SystemExit:
    """Prints the error as one line to stderr. The caller raises the result: exit 1."""
    click.echo(f"leadline: {message}", err=True)
    return SystemExit(1)


def first_cause(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Returns the first leaf exception of a group, whose message the command prints."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def print_out(data: bytes) -> None:
    """Writes bytes and one line end to stdout, independent of the locale.

    Exits with 1 if the output cannot be written, since a redirected file would be incomplete."""
    try:
        click.echo(data.rstrip(b"\n"))
    except OSError as error:
        raise fail(f"the output cannot be written: {error.strerror}") from error
