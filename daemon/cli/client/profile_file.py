"""The file of profiles: for each name a server, its token and the project that is meant by default.

Invariants: the file belongs to the user and has the mode 0600 from its creation. It is replaced as
a whole. A file that another user can read or write is refused, and so is a link.

The option --profile completes the names of the file.
"""

import errno
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click
import msgspec
from click.shell_completion import CompletionItem

from ....storage.core.slug import is_slug

FILE_BYTES_MOST: Final = 1024 * 1024
DEFAULT_NAME: Final = "default"
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class BadProfiles(Exception):
    """The file cannot be used. The message states the reason and what to do."""


class Profile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A server and how to sign in. Without a token, the system keyring has it."""

    url: str
    token: str = ""
    ca_file: str = ""
    # The project that commands without --project mean, by its id.
    project: str = ""

    def __repr__(self) -> str:
        return f"Profile({self.url!r})"


class Profiles(msgspec.Struct, frozen=True, kw_only=True):
    """All profiles by name. `current` names the one that commands without --profile use."""

    current: str = ""
    profiles: dict[str, Profile] = {}

    def put(self, name: str, profile: Profile) -> "Profiles":
        """Returns the profiles with this one, which becomes the current one."""
        return Profiles(current=name, profiles={**self.profiles, name: profile})

    def without(self, name: str) -> "Profiles":
        """Returns the profiles without this one. If it was the current one, there is none then."""
        left = {each: one for each, one in self.profiles.items() if each != name}
        return Profiles(current="" if self.current == name else self.current, profiles=left)


def profile_path(environ: Mapping[str, str]) -> Path:
    """Returns the place of the file below XDG_CONFIG_HOME, by default ~/.config.

    Raises BadProfiles if there is no such folder.
    """
    given = environ.get("XDG_CONFIG_HOME", "")
    # The specification requires that a relative path is ignored.
    try:
        folder = Path(given) if given.startswith("/") else Path.home() / ".config"
    except RuntimeError:
        raise BadProfiles("this user has no home folder: set XDG_CONFIG_HOME or HOME") from None
    return folder / "leadline" / "profiles.json"


def read_profiles(path: Path) -> Profiles:
    """Returns the profiles; none if there is no file. Raises BadProfiles."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return Profiles()
    except OSError as error:
        why = "it is a symbolic link" if error.errno == errno.ELOOP else error.strerror
        raise BadProfiles(f"{path} cannot be read: {why}") from error
    try:
        # A folder can be opened, but not as a file object.
        _demand_private(path, os.fstat(file))
        with open(file, "rb", closefd=False) as opened:
            data = opened.read(FILE_BYTES_MOST + 1)
    finally:
        os.close(file)
    try:
        if len(data) <= FILE_BYTES_MOST:
            return msgspec.json.decode(data, type=Profiles)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    raise BadProfiles(f"{path} is no file of profiles: delete it and sign in with `leadline login`")


def _demand_private(path: Path, found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise BadProfiles(f"{path} is not a regular file")
    if found.st_uid != os.geteuid():
        raise BadProfiles(f"{path} belongs to another user: delete it and sign in again")
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise BadProfiles(
            f"{path} has the mode {mode:04o}, so other users can read or change the token:"
            " run `chmod 600` on it, and revoke the token if others have an account here"
        )


def write_profiles(path: Path, profiles: Profiles) -> None:
    """Replaces the file atomically. Raises BadProfiles."""
    made = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    data = msgspec.json.format(msgspec.json.encode(profiles), indent=2) + b"\n"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with open(file, "wb") as opened:
                # The umask can only remove bits of the mode.
                os.fchmod(opened.fileno(), 0o600)
                opened.write(data)
                opened.flush()
                os.fsync(opened.fileno())
            made.replace(path)
        except BaseException:
            made.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadProfiles(f"{path} cannot be written: {error.strerror}") from error


class ProfileParam(click.ParamType[str]):
    """Name of a profile. It has the form of a slug."""

    name = "name"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        if not is_slug(str(value)):
            self.fail("must have lower-case letters, digits and hyphens only", param, ctx)
        return str(value)

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 - click's signature
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list[CompletionItem]:
        """Returns the known names. Completion prints no errors, so a bad file has no names."""
        try:
            known = read_profiles(profile_path(os.environ)).profiles
        except BadProfiles:
            return []
        return [CompletionItem(name) for name in sorted(known) if name.startswith(incomplete)]


profile_option = click.option(
    "--profile",
    type=ProfileParam(),
    help="Profile of `leadline login`.  [default: $LEADLINE_PROFILE, else the last sign-in]",
)
