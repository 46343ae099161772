"""leadline logout"""

import os

import click

from . import token_keyring
from .profile_file import profile_option, profile_path, read_profiles, write_profiles
from .session import ended_quietly


@click.command("logout")
@profile_option
def command(profile: str | None) -> None:
    """Delete a profile with its token.

    The token itself stays valid: revoke it in the console if it is no longer needed.

    \b
    Example:
      leadline logout --profile work
    Exit status: 0 deleted, 2 no such profile.
    """
    with ended_quietly():
        path = profile_path(os.environ)
        known = read_profiles(path)
        name = profile or os.environ.get("LEADLINE_PROFILE", "") or known.current
        found = known.profiles.get(name)
        if found is None:
            raise click.UsageError(f"no profile {name}" if name else "not signed in")
        if not found.token:
            try:
                token_keyring.delete_token(name, found.url)
            except token_keyring.KeyringFailed as error:
                click.echo(f"leadline: warning: {error}: the token may still be there", err=True)
        write_profiles(path, known.without(name))
    click.echo(f"Deleted profile {name} of {found.url}")
