"""CPU seconds of a process and everything that it starts, from a control group of its own."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# The first is cgroup v1, the second v2, the third v2 beside v1. A container may make it read-only.
_ROOTS: Final = (Path("/sys/fs/cgroup/cpuacct"), Path("/sys/fs/cgroup"))


class CpuGroup:
    """The control group into which `enter` moved this process; also its later children.

    Servers and daemons that a test starts are children, and their time counts while they run.
    """

    def __init__(self, folder: Path, parent: Path) -> None:
        self._folder, self._parent = folder, parent

    def seconds(self) -> float:
        """Returns the seconds that the group has used, user and system."""
        v1 = self._folder / "cpuacct.usage"
        if v1.exists():
            return int(v1.read_text()) / 1e9
        usage = (self._folder / "cpu.stat").read_text().split()
        return int(usage[usage.index("usage_usec") + 1]) / 1e6

    def leave(self) -> None:
        """Moves this process back. The group stays while a child is in it."""
        with suppress(OSError):
            (self._parent / "cgroup.procs").write_text(str(os.getpid()))
            self._folder.rmdir()


def enter() -> CpuGroup | None:
    """Moves this process to a new group; None where the system has none or refuses it."""
    for root in _ROOTS:
        folder = root / f"leadline-tests-{os.getpid()}"
        try:
            folder.mkdir()
            group = CpuGroup(folder, root)
            (folder / "cgroup.procs").write_text(str(os.getpid()))
            group.seconds()
        except (OSError, ValueError):
            with suppress(OSError):
                folder.rmdir()
            continue
        return group
    return None
