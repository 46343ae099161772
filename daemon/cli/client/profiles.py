"""leadline profiles list|use"""

import os

import click

from .printed import print_json
from .profile_file import ProfileParam, Profiles, profile_path, read_profiles, write_profiles
from .session import ended_quietly, json_option
from .table import Column, print_table


@click.group("profiles")
def command() -> None:
    """List the profiles of `leadline login`, and choose one."""


@command.command("list")
@json_option
def list_(as_json: bool) -> None:
    """List the profiles, without their tokens.

    \b
    Example:
      leadline profiles list
    Exit status: 0 printed, 2 the file of profiles is refused.
    """
    with ended_quietly():
        known = read_profiles(profile_path(os.environ))
    rows = [
        {
            "name": name,
            "current": name == known.current,
            "url": one.url,
            "project": one.project,
            "token": "file" if one.token else "keyring",
        }
        for name, one in sorted(known.profiles.items())
    ]
    if as_json:
        print_json(rows)
        return
    columns = [Column(""), Column("NAME"), Column("URL", cut=True), Column("TOKEN")]
    cells = [
        ["*" if row["current"] else "", *(row[k] for k in ("name", "url", "token"))] for row in rows
    ]
    print_table(columns, cells, "No profiles. Sign in with `leadline login --url URL`.")


@command.command("use")
@click.argument("name", type=ProfileParam())
def use(name: str) -> None:
    """Choose the profile that commands without --profile use.

    \b
    Example:
      leadline profiles use work
    Exit status: 0 chosen, 2 no such profile.
    """
    with ended_quietly():
        path = profile_path(os.environ)
        known = read_profiles(path)
        if name not in known.profiles:
            others = ", ".join(sorted(known.profiles)) or "none"
            raise click.UsageError(f"no profile {name}; known profiles: {others}")
        write_profiles(path, Profiles(current=name, profiles=known.profiles))
    click.echo(f"Commands now use profile {name}")
