"""Options, progress and errors that `leadline backup` and `leadline restore` share."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from ...storage.core.refusal import Unavailable
from ...storage.engine.backup import BackupFailed, Progress
from ...storage.engine.backup_file import BadBackup
from ...storage.engine.backup_key import PASSPHRASE_LONGEST, passphrase_fault
from ...storage.engine.client_programs import NoClientPrograms
from ...storage.engine.database_errors import Rejected
from ...storage.engine.embedded_postgres import CannotRun
from ..config.config_schema import Settings
from ..config.load import BadConfig, default_data_dir

PASSPHRASE_VARIABLE: Final = "LEADLINE_BACKUP_PASSPHRASE"
# Errors that a command reports in one line.
ERRORS: Final = (
    BackupFailed,
    BadBackup,
    BadConfig,
    CannotRun,
    NoClientPrograms,
    OSError,
    Rejected,
    Unavailable,
)

passphrase_option = click.option(
    "--passphrase-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"File with the passphrase of the encryption key.  [default: ${PASSPHRASE_VARIABLE},"
    " else backup.passphrase_file, else a prompt]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


def data_dir_of(settings: Settings) -> Path:
    return Path(settings.data_dir) if settings.data_dir else default_data_dir()


def direct_dsn(settings: Settings) -> str:
    """Returns the DSN of PostgreSQL itself, not of a pooler; empty for the embedded store."""
    database = settings.database
    return (database.listen_dsn or database.dsn) if database.dsn else ""


def read_passphrase(file: Path | None, settings: Settings, *, confirm: bool) -> str:
    """Returns the passphrase of the option, the environment, the configuration or a prompt.

    Raises BackupFailed if it is missing, or too short or too long."""
    if file is None and PASSPHRASE_VARIABLE not in os.environ and settings.backup.passphrase_file:
        file = Path(settings.backup.passphrase_file)
    if file is not None:
        passphrase, source = _first_characters(file).rstrip("\r\n"), str(file)
    elif PASSPHRASE_VARIABLE in os.environ:
        passphrase, source = os.environ[PASSPHRASE_VARIABLE], PASSPHRASE_VARIABLE
    elif sys.stdin is not None and sys.stdin.isatty():
        prompt = "Passphrase of the encryption key"
        passphrase = click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True)
        source = "the passphrase"
    else:
        raise BackupFailed(
            "the encryption key needs a passphrase: give --passphrase-file,"
            f" {PASSPHRASE_VARIABLE} or backup.passphrase_file, or leave the key out with"
            " --without-key"
        )
    fault = passphrase_fault(passphrase)
    if fault is not None:
        raise BackupFailed(f"{source}: the passphrase {fault}")
    return passphrase


def _first_characters(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(PASSPHRASE_LONGEST + 2)
    except UnicodeDecodeError as error:
        raise BackupFailed(
            f"{file}: the passphrase must be text in UTF-8; make one with `openssl rand -base64 24`"
        ) from error


def message_of(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


@contextmanager
def showing_progress(text: str, total: int | None = None) -> Iterator[Progress]:
    """Yields a function that moves a bar on the standard error output of a terminal."""
    columns = (TextColumn(text), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Bar(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(text, total=total)
        yield lambda count: bar.advance(task, count)
