"""leadline migrate"""

from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import trio

from ...storage.core.refusal import Unavailable
from ...storage.engine import embedded_postgres as embedded
from ...storage.engine.embedded_postgres import CannotRun
from ...storage.engine.migrate import CannotMigrate, migrate
from ..config.config_schema import Settings
from ..config.load import default_data_dir
from .options import config_option, fail, first_cause, read_settings


async def with_store(settings: Settings, work: Callable[[str], Awaitable[None]]) -> None:
    """Calls `work` with the DSN of the database. Runs the embedded PostgreSQL during the call."""
    if settings.database.dsn:
        await work(settings.database.dsn)
        return
    data_dir = Path(settings.data_dir) if settings.data_dir else default_data_dir()
    await trio.Path(data_dir).mkdir(parents=True, exist_ok=True, mode=0o755)
    async with embedded.running(data_dir) as server:
        await work(server.dsn)


@click.command("migrate")
@config_option
def command(config_path: Path | None) -> None:
    """Apply the migrations that the database lacks. Repeating it changes nothing.

    \b
    Example:
      leadline migrate --config /etc/leadline/leadline.toml
    Exit status: 0 if the database has the schema of this version, 1 otherwise.
    """
    settings = read_settings(config_path)

    async def work(dsn: str) -> None:
        applied = await migrate(dsn)
        for name in applied:
            click.echo(f"applied {name}")
        if not applied:
            click.echo("no migrations to apply")

    try:
        trio.run(with_store, settings, work)
    except* (CannotRun, CannotMigrate, Unavailable) as group:
        raise fail(str(first_cause(group))) from group
