"""The account that a command acts as: a profile, or the address and the token of the environment.

Invariant: a command never guesses between two of them, and never sends a token to another server
than the one that the token belongs to.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from ..api_client import ApiServer, authorities_of, base_of, is_token, read_server
from .profile_file import Profile, profile_path, read_profiles
from .token_keyring import KeyringFailed, get_token


@dataclass(frozen=True, slots=True)
class Account:
    """Server, token, and the project that is meant if none is given. `profile` can be empty."""

    server: ApiServer
    profile: str = ""
    project: str = ""

    @property
    def source(self) -> str:
        """Returns where the token is from, for messages."""
        return f"profile {self.profile}" if self.profile else "LEADLINE_TOKEN"

    @property
    def sign_in(self) -> str:
        """Returns what to do about a token that the server does not accept."""
        if self.profile:
            return f"run `leadline login --profile {self.profile}`"
        return "set LEADLINE_TOKEN to a valid token"


def choose_account(profile: str | None, environ: Mapping[str, str]) -> Account:
    """Returns the account of a command.

    --profile wins. Then LEADLINE_URL with LEADLINE_TOKEN or LEADLINE_PROFILE, which together are a
    usage error. Then the profile of the last `login` or `profiles use`. Raises: UsageError,
    BadProfiles.
    """
    named = environ.get("LEADLINE_PROFILE", "")
    if profile is None and (environ.get("LEADLINE_URL") or environ.get("LEADLINE_TOKEN")):
        if named:
            raise click.UsageError(
                "LEADLINE_PROFILE is set, and so is LEADLINE_URL or LEADLINE_TOKEN:"
                " unset one of them, or give --profile"
            )
        return Account(read_server(environ))
    return _account_of(profile or named, environ)


def _account_of(named: str, environ: Mapping[str, str]) -> Account:
    known = read_profiles(profile_path(environ))
    name = named or known.current
    if not name:
        raise click.UsageError("not signed in: run `leadline login --url URL`")
    found = known.profiles.get(name)
    if found is None:
        others = ", ".join(sorted(known.profiles)) or "none"
        raise click.UsageError(f"no profile {name}; known profiles: {others}")
    return Account(server_of(name, found), name, found.project)


def server_of(name: str, profile: Profile) -> ApiServer:
    """Returns the server of a profile with its token. Raises UsageError."""
    place = f"profile {name}"
    try:
        token = profile.token or get_token(name, profile.url)
    except KeyringFailed as error:
        raise click.UsageError(f"{place}: {error}") from error
    if not is_token(token):
        raise click.UsageError(f"{place} has no token: run `leadline login --profile {name}`")
    ca_file: Path | None = None
    if profile.ca_file:
        ca_file = authorities_of(profile.ca_file, f"{place}: {profile.ca_file}")
    return ApiServer(base_of(profile.url, place), token, ca_file)
