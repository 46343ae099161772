"""leadline admin create-user|reset-password|remove-second-factor|release-provider"""

import secrets
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import click
import trio

from ...http.auth.passwords import Passwords, rule_broken
from ...storage.accounts.rules.access import CredentialKind, Principal
from ...storage.accounts.transactions.edit_totp import remove_factor
from ...storage.accounts.transactions.edit_users import create_user as create_person
from ...storage.accounts.transactions.reset_password import reset_password as give_password
from ...storage.bundles.transactions.release_provider import Released, release_provider
from ...storage.core.instant import Instant
from ...storage.core.refusal import Refused, Unavailable
from ...storage.engine.embedded_postgres import CannotRun
from ...storage.engine.migrate import CannotMigrate, migrate
from ...storage.engine.pools import Tx, open_pool
from ...storage.scheduling.tables.presences import read_clock
from ..config.config_schema import Settings
from ..process.first_start import PASSWORD_BYTES
from ..runtime import limits
from .migrate import with_store
from .options import config_option, fail, first_cause, read_settings

# Access to the database implies all rights. The audit log names the command line as the actor.
OPERATOR = Principal(CredentialKind.SESSION, is_global_admin=True, label="command line")


@click.group("admin")
def command() -> None:
    """Create users, reset passwords and remove second factors directly in the database.

    Use it if no administrator can sign in. With the embedded PostgreSQL stop the daemon first,
    since one process owns a data directory.
    """


@command.command("create-user")
@config_option
@click.argument("email")
@click.option("--name", default="", help="Display name.")
@click.option("--global-admin", is_flag=True, help="Make the user a global admin.")
def create_user(config_path: Path | None, email: str, name: str, global_admin: bool) -> None:
    """Create a local user. The password is read from a pipe, or generated and printed.

    \b
    Example:
      leadline admin create-user mara@example.org --global-admin
    Exit status: 0 created, 1 refused, for example because the address is taken.
    """
    settings = read_settings(config_path)
    password, is_made = _password(settings)

    async def write(tx: Tx) -> None:
        await create_person(tx, OPERATOR, email, name, hashed, admin=global_admin)

    hashed = _hashed(password)
    _apply(settings, write)
    _print(f"created {email}", password, is_made)


@command.command("reset-password")
@config_option
@click.argument("email")
def reset_password(config_path: Path | None, email: str) -> None:
    """Set a new password and end all sessions of a user.

    \b
    Example:
      leadline admin reset-password mara@example.org
      printf '%s' "$NEW" | leadline admin reset-password mara@example.org
    Exit status: 0 done, 1 refused, for example because no such user exists.
    """
    settings = read_settings(config_path)
    password, is_made = _password(settings)

    async def write(tx: Tx) -> None:
        await give_password(tx, OPERATOR, email, hashed)

    hashed = _hashed(password)
    _apply(settings, write)
    _print(f"new password set for {email}", password, is_made)


@command.command("remove-second-factor")
@config_option
@click.argument("email")
def remove_second_factor(config_path: Path | None, email: str) -> None:
    """Remove the second factor of a user who lost the authenticator and the recovery codes.

    \b
    Example:
      leadline admin remove-second-factor mara@example.org
    Exit status: 0 done, 1 refused, for example because no such user exists.
    """

    async def write(tx: Tx) -> None:
        await remove_factor(tx, OPERATOR, email)

    _apply(read_settings(config_path), write)
    click.echo(f"removed the second factor of {email}")


@command.command("release-provider")
@config_option
@click.argument("name")
def release(config_path: Path | None, name: str) -> None:
    """Make the objects of a removed file provider editable by users.

    They stay unchanged. A provider that is still configured takes them over
    again.

    \b
    Example:
      leadline admin release-provider git
    Exit status: 0 done, 1 refused because no such provider is known.
    """
    released = Released(0, 0, 0)

    async def write(tx: Tx) -> None:
        nonlocal released
        released = await release_provider(tx, OPERATOR, name)

    _apply(read_settings(config_path), write)
    numbers = f"{released.monitors} monitors, {released.services} services"
    click.echo(f"released {numbers} and {released.oncall} on-call objects")
    if released.others:
        click.echo(f"and {released.others} other objects")


def _hashed(password: str) -> str:
    async def hashed() -> str:
        return await Passwords(limits.hashing()).hash(password)

    return trio.run(hashed)


def _apply(settings: Settings, write: Callable[[Tx], Awaitable[None]]) -> None:
    clock = [Instant(0)]

    async def work(dsn: str) -> None:
        await migrate(dsn)
        async with open_pool(dsn, name="admin", size=1, clock=lambda: clock[0]) as pool:
            async with pool.statement("read_clock") as tx:
                clock[0], _ = await read_clock(tx)
            async with pool.transaction("edit_by_command_line") as tx:
                await write(tx)

    try:
        trio.run(with_store, settings, work)
    except* (CannotRun, CannotMigrate, Unavailable, Refused) as group:
        raise fail(str(first_cause(group))) from group


def _password(settings: Settings) -> tuple[str, bool]:
    """Returns the password from a pipe, or a new one, and whether it is new.

    It is never an argument, since every process of the host can read arguments."""
    if sys.stdin is None or sys.stdin.isatty():
        return secrets.token_urlsafe(PASSWORD_BYTES), True
    given = sys.stdin.readline().rstrip("\r\n")
    if not given:
        return secrets.token_urlsafe(PASSWORD_BYTES), True
    broken = rule_broken(given, settings.local.min_password_length)
    if broken:
        raise fail(f"the password {broken}")
    return given, False


def _print(done: str, password: str, is_made: bool) -> None:
    click.echo(done)
    if is_made:
        click.echo(f"Password: {password}")
