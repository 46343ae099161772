"""Files and folders that `leadline install` writes for each role.

Invariants: a second run with the same arguments changes nothing. A configuration file and a folder
that exist keep their content, owner and mode. After a crash each file is complete, or as it was
before.
"""

import grp
import os
import pwd
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

# The path of the command in the units of the package.
PACKAGED_PROGRAM: Final = "/opt/leadline/bin/leadline"
# A timer is started by its operator: systemctl enable --now leadline-backup.timer.
BACKUP: Final = ("leadline-backup.service", "leadline-backup.timer")
UNIT_FOLDER: Final = "etc/systemd/system"
# Folders that the units hide from the daemon: ProtectHome and PrivateTmp.
HIDDEN: Final = tuple(map(Path, ("/home", "/root", "/run/user", "/tmp", "/var/tmp")))  # noqa: S108


# Characters of a word that needs no quotes.
_PLAIN: Final = re.compile(r"[\w/.+@:%=,~-]+")
# Symbolic links that the kernel follows in one path.
_LINKS: Final = 40
_MASK: Final = "/dev/null"


class CannotInstall(Exception):
    """The installation is not possible. The message has the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class InstallStep:
    """One file or folder. A folder has no `content`.

    `user` owns a folder, and the group of `user` can read a file, which root owns. `is_kept` leaves
    an existing file as it is.
    """

    path: str
    mode: int
    content: str | None = None
    user: str | None = None
    is_kept: bool = False


@dataclass(frozen=True, slots=True)
class Installation:
    """The steps of one role. `unit` is the argument of `systemctl enable`."""

    user: str
    steps: tuple[InstallStep, ...]
    unit: str
    config: str


def installation_of(role: str, program: Path) -> Installation:
    """Returns the steps for `all`, `agent`, or one of the roles that share a PostgreSQL."""
    if role == "agent":
        return _installation("leadline-agent", ("leadline-agent.service",), "agent.toml", program)
    if role == "all":
        return _installation("leadline", ("leadline.service", *BACKUP), "leadline.toml", program)
    shared = _installation("leadline", ("leadline@.service", *BACKUP), "leadline.toml", program)
    return replace(shared, unit=f"leadline@{role}")


def _installation(user: str, units: tuple[str, ...], config: str, program: Path) -> Installation:
    steps = [
        InstallStep(f"etc/sysusers.d/{user}.conf", 0o644, packaged(f"{user}.sysusers")),
        InstallStep(f"etc/tmpfiles.d/{user}.conf", 0o644, packaged(f"{user}.tmpfiles")),
        InstallStep("etc/leadline", 0o755),
        InstallStep(f"var/lib/{user}", 0o700, user=user),
        InstallStep(f"etc/leadline/{config}", 0o640, packaged(config), user=user, is_kept=True),
    ]
    if BACKUP[0] in units:
        steps.append(InstallStep("var/backups/leadline", 0o700, user=user))
    for unit in units:
        text = packaged(unit).replace(PACKAGED_PROGRAM, quoted_program(program))
        steps.append(InstallStep(f"{UNIT_FOLDER}/{unit}", 0o644, text))
    unit = units[0].removesuffix(".service")
    return Installation(user, tuple(steps), unit, f"/etc/leadline/{config}")


def quoted_program(program: Path) -> str:
    """Returns the path as a word of ExecStart, see systemd.syntax(7). Raises CannotInstall."""
    text = str(program)
    if not text.isprintable():
        raise CannotInstall(f"--program: {text!r} contains a character that a unit cannot contain")
    # systemd replaces %-specifiers, also in quotes.
    text = text.replace("%", "%%")
    if _PLAIN.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def packaged(name: str) -> str:
    """Returns the text of a file in the folder `systemd` of the package."""
    return (files("leadline") / "systemd" / name).read_text(encoding="utf-8")


def own_program() -> Path:
    """Returns the `leadline` command of this Python.

    Raises: CannotInstall if a unit cannot run it.
    """
    program = Path(sysconfig.get_path("scripts")) / "leadline"
    if not program.exists():
        raise CannotInstall(f"{program} does not exist: give the path of the command as --program")
    interpreter = program.with_name("python").resolve()
    for path in (program.absolute(), interpreter):
        for hidden in HIDDEN:
            if path.is_relative_to(hidden):
                raise CannotInstall(
                    f"the unit cannot run {path}, since it hides {hidden} from the daemon:"
                    " install the package in /opt/leadline with a Python of the system, or give"
                    " another command as --program"
                )
    return program


class Installer:
    """Performs steps below `root`, or only reports them with `is_dry`."""

    def __init__(self, root: Path, report: Callable[[str], None], *, is_dry: bool) -> None:
        self._root = root
        self._is_live = root == Path("/")
        self._report = report
        self._is_dry = is_dry

    def run(self, plan: Installation) -> None:
        """Performs the steps in order. Raises CannotInstall; finished steps stay in place."""
        try:
            for step in plan.steps:
                if step.user is not None and not self._is_dry:
                    self._ensure_user(step.user)
                self._perform(step)
        except OSError as error:
            where = error.filename or self._root
            raise CannotInstall(f"{where}: {error.strerror}") from error

    def _perform(self, step: InstallStep) -> None:
        named = self._root / step.path
        if named.is_symlink() and os.readlink(named) == _MASK:
            self._report(f"{'masked':9} {named}: it stays masked, see systemctl unmask")
            return
        folder = self._inside(str(Path(step.path).parent))
        # A link to a folder stays; one to a file is replaced by the file.
        path = self._inside(step.path) if step.content is None else folder / named.name
        verb = self._verb(step, self._inside(step.path))
        if not self._is_dry and verb in ("create", "replace"):
            if step.content is None:
                self._make_folder(path, step)
            else:
                self._write(path, step, step.content)
        self._report(f"{verb:9} {path}")

    def _verb(self, step: InstallStep, path: Path) -> str:
        if not path.exists():
            return "create"
        if step.content is None or step.is_kept:
            return "keep"
        return "keep" if path.read_text(encoding="utf-8") == step.content else "replace"

    def _inside(self, path: str) -> Path:
        """Follows the links of a path as if `root` were /, which they cannot leave."""
        words, found, links = path.split("/")[::-1], self._root, 0
        while words:
            word = words.pop()
            if word == "..":
                found = found if found == self._root else found.parent
            elif word not in ("", "."):
                found /= word
            if found.is_symlink():
                links += 1
                if links > _LINKS:
                    raise CannotInstall(f"{self._root / path}: too many symbolic links")
                target = os.readlink(found)
                words += target.split("/")[::-1]
                found = self._root if target.startswith("/") else found.parent
        return found

    def _make_folder(self, path: Path, step: InstallStep) -> None:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
        if step.user is not None and (ids := self._ids(step.user)):
            os.chown(path, *ids)
        path.chmod(step.mode)

    def _write(self, path: Path, step: InstallStep, content: str) -> None:
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.name}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as out:
            out.write(content)
            out.flush()
            if step.user is not None and (ids := self._ids(step.user)):
                os.fchown(descriptor, 0, ids[1])
            os.fchmod(descriptor, step.mode)
            os.fsync(descriptor)
        fresh.replace(path)

    def _ensure_user(self, user: str) -> None:
        """Creates a system user on this machine. An image gets it from sysusers.d at its boot."""
        if not self._is_live or self._ids(user) is not None:
            return
        sysusers = f"/etc/sysusers.d/{user}.conf"
        for command in (
            ["systemd-sysusers", sysusers],
            ["useradd", "--system", "--user-group", "--no-create-home", f"-d/var/lib/{user}", user],
        ):
            if shutil.which(command[0]) is None:
                continue
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
            if self._ids(user) is None:
                raise CannotInstall(f"{' '.join(command)} failed: {done.stderr.strip()}")
            self._report(f"{'create':9} user {user}")
            return
        raise CannotInstall(
            f"user {user} does not exist, and this host has neither systemd-sysusers nor useradd"
        )

    def _ids(self, user: str) -> tuple[int, int] | None:
        """Returns uid and gid of the user, for an image from the image's own files.

        None if the user does not exist, or if this process is not root and cannot change owners."""
        if os.geteuid() != 0:
            return None
        if self._is_live:
            with suppress(KeyError):
                return pwd.getpwnam(user).pw_uid, grp.getgrnam(user).gr_gid
            return None
        uid = self._id_in("etc/passwd", user)
        gid = self._id_in("etc/group", user)
        return None if uid is None or gid is None else (uid, gid)

    def _id_in(self, file: str, name: str) -> int | None:
        return next((number for other, number in self._ids_in(file) if other == name), None)

    def _ids_in(self, file: str) -> Iterator[tuple[str, int]]:
        path = self._inside(file)
        for line in path.read_text().splitlines() if path.exists() else ():
            fields = line.split(":")
            if len(fields) > 2 and fields[2].isdigit():
                yield fields[0], int(fields[2])
