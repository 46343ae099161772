"""What several commands share: where the configuration is, how faults are told, what is printed."""

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
    help="Which parts the process runs.",
)


def read_settings(path: Path | None) -> Settings:
    """The settings; every fault goes to the standard error output, a line each, and exit 2."""
    try:
        return config.load(path, os.environ)
    except config.BadConfig as error:
        raise fail_configuration(error.faults) from error


def fail_configuration(faults: Iterable[str]) -> SystemExit:
    """Prints a line for each fault of the configuration; exit 2; to be raised."""
    for fault in faults:
        click.echo(f"leadline: {fault}", err=True)
    return SystemExit(2)


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
