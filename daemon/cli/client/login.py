"""leadline login"""

import os
import sys
from typing import Any

import click

from ..api_client import ApiServer, NoResponse, authorities_of, base_of, is_token, within
from ..options import fail_configuration
from ..safe_text import shown
from . import token_keyring
from .account import Account
from .lookup import ProjectParam, find_project
from .profile_file import (
    DEFAULT_NAME,
    Profile,
    ProfileParam,
    Profiles,
    profile_path,
    read_profiles,
    write_profiles,
)
from .session import Api, ended_quietly

TIMEOUT_SECONDS = 30.0
STDIN_LONGEST = 8_192
KEYRING = "the system keyring"
LOOPBACK = ("127.0.0.1", "::1", "localhost")


@click.command("login")
@click.option("--url", help="Address of the console.  [default: that of the profile]")
@click.option(
    "--profile",
    type=ProfileParam(),
    envvar="LEADLINE_PROFILE",
    default=DEFAULT_NAME,
    show_default=True,
    help="Name under which the server and the token are stored.",
)
@click.option("--token-stdin", is_flag=True, help="Read the token from the standard input.")
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, resolve_path=True),
    envvar="LEADLINE_CA_FILE",
    help="Certificate authorities to trust instead of those of this host.",
)
@click.option(
    "--project",
    type=ProjectParam(),
    help="Project that commands without --project mean: slug, organization/project, or id.",
)
@click.option(
    "--store",
    type=click.Choice(["file", "keyring"]),
    help="Where the token is kept.  [default: the system keyring if there is one, else the file]",
)
def command(
    url: str | None,
    profile: str,
    token_stdin: bool,
    ca_file: str | None,
    project: str | None,
    store: str | None,
) -> None:
    """Sign in to a server with an API token, and remember it as a profile.

    The command asks for the token without showing it, verifies it, and stores it in a file that
    only you can read, $XDG_CONFIG_HOME/leadline/profiles.json (by default below ~/.config), or in
    the keyring of the system if leadline[keyring] is installed. Create the token in the console:
    Organization, API tokens. Its role decides what the commands can do.

    \b
    Example:
      leadline login --url https://status.example.org
      pass show leadline | leadline login --url https://status.example.org --token-stdin
    Exit status: 0 signed in, 1 refused or no connection, 2 usage error, 130 interrupted.
    """
    with ended_quietly():
        path = profile_path(os.environ)
        known = read_profiles(path)
        before = known.profiles.get(profile)
        address = url or (before.url if before else "")
        if not address:
            raise click.UsageError("give --url: the address of the console")
        authorities = ca_file or (before.ca_file if before and not url else "")
        server = ApiServer(
            base_of(address, "--url"),
            _token(token_stdin),
            authorities_of(authorities, "--ca-file") if authorities else None,
        )
        _warn(server)
        who, default = _verify(server, profile, project)
        made = Profile(url=str(server.base).rstrip("/"), ca_file=authorities, project=default)
        place = _store(known, profile, made, server.token, store)
        _forget(before, profile, "" if place != KEYRING else made.url)
    click.echo(f"Signed in to {made.url} as {who}")
    click.echo(f"The token of profile {profile} is in {place}")


def _token(from_stdin: bool) -> str:
    if from_stdin:
        text = sys.stdin.read(STDIN_LONGEST).strip()
    elif sys.stdin.isatty():
        text = click.prompt("API token", hide_input=True, err=True).strip()
    else:
        raise click.UsageError("no terminal to ask for the token: give --token-stdin")
    if not text:
        raise click.UsageError("the token is empty")
    if not is_token(text):
        raise click.UsageError("the token contains characters not allowed in a token")
    return str(text)


def _warn(server: ApiServer) -> None:
    if server.base.scheme == "http" and server.base.host not in LOOPBACK:
        click.echo("leadline: warning: http sends the token without encryption", err=True)


def _verify(server: ApiServer, profile: str, project: str | None) -> tuple[str, str]:
    """Returns whom the token belongs to, and the id of the default project, empty without one."""
    api = Api(server.client(), Account(server, profile))

    async def ask() -> tuple[str, str]:
        me = await api.get("/me", f"sign in to {server.base.authority}")
        if not isinstance(me, dict) or "memberships" not in me:
            raise NoResponse("cannot sign in: the answer is not from a Leadline server")
        default = (await find_project(api, project)).uid if project else ""
        return _name_of(me), default

    return within(TIMEOUT_SECONDS, ask)


def _name_of(me: dict[str, Any]) -> str:
    user = me.get("user")
    if user:
        return shown(str(user.get("email")), 254)
    roles = sorted({str(one.get("role")) for one in me["memberships"]})
    return f"an API token with the role {shown(', '.join(roles), 100) or 'none'}"


def _store(known: Profiles, name: str, made: Profile, token: str, store: str | None) -> str:
    """Stores profile and token, and returns where the token is."""
    path = profile_path(os.environ)
    if store == "keyring" or (store is None and token_keyring.has_keyring()):
        try:
            token_keyring.put_token(name, made.url, token)
        except token_keyring.KeyringFailed as error:
            raise fail_configuration([f"{error}; give --store file"]) from error
        write_profiles(path, known.put(name, made))
        return KEYRING
    stored = Profile(url=made.url, token=token, ca_file=made.ca_file, project=made.project)
    write_profiles(path, known.put(name, stored))
    return str(path)


def _forget(before: Profile | None, name: str, kept: str) -> None:
    """Deletes the earlier token of the profile from the keyring, unless it was replaced there."""
    if before is None or before.token or before.url == kept:
        return
    try:
        token_keyring.delete_token(name, before.url)
    except token_keyring.KeyringFailed as error:
        text = f"{error}: the earlier token of {before.url} may still be there"
        click.echo(f"leadline: warning: {text}", err=True)
