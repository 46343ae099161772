"""A machine without Leadline: a new root file system with the programs of this host.

`/usr` is that of the host, read-only. Everything else is new: `/etc` with the users root and
nobody, `/var`, `/opt`, and a network with a loopback device only. pip installs the wheel of the
tree from a folder, because there is no package index. Needs root.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

from tests.support.processes.built_wheel import build_wheel

SYSTEM_PYTHON: Final = Path("/usr/bin/python3")
_FOLDERS: Final = ("dev", "etc", "opt", "proc", "root", "run", "tmp", "usr", "var/lib", "var/tmp")
_FOLDERS_OF_THE_TEST: Final = ("wheels", "dependencies")
_LINKS: Final = ("bin", "lib", "lib64", "sbin")
_UNSHARE: Final = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")
_SET_UP: Final = """
mount --make-rprivate /
mount --bind "$R" "$R"
mount --bind -o ro /usr "$R/usr"
mount --rbind /dev "$R/dev"
mount -t tmpfs -o mode=1777 tmpfs "$R/dev/shm"
mount --bind -o ro "$DEPENDENCIES" "$R/dependencies"
mount -t proc proc "$R/proc"
ip link set lo up
exec chroot "$R" /bin/sh -eu /script
"""
_ENVIRONMENT: Final = {
    "PATH": "/usr/sbin:/usr/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "SYSTEMD_OFFLINE": "1",
    # The documented command finds the wheel of the tree here. Its dependencies come from the
    # environment of the tests, with `add_dependencies`.
    "PIP_FIND_LINKS": "/wheels",
    "PIP_NO_INDEX": "1",
    "PIP_NO_DEPS": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def can_make_environments() -> bool:
    """Returns whether the system's Python has this version, and the module that `venv` needs."""
    version = "{}.{}".format(*sys.version_info[:2])
    code = f"import sys, ensurepip; assert '%d.%d' % sys.version_info[:2] == '{version}'"
    command = [str(SYSTEM_PYTHON), "-c", code]
    return SYSTEM_PYTHON.exists() and subprocess.run(command, capture_output=True).returncode == 0


class CleanRoot:
    """One root in `folder`, which other users must be able to enter."""

    def __init__(self, folder: Path) -> None:
        self.path = folder
        for name in (*_FOLDERS, *_FOLDERS_OF_THE_TEST):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        for name in _LINKS:
            if Path("/", name).is_symlink():
                (folder / name).symlink_to(f"usr/{name}")
        etc = folder / "etc"
        (etc / "passwd").write_text(
            "root:x:0:0::/root:/bin/sh\nnobody:x:65534:65534::/:/usr/sbin/nologin\n"
        )
        (etc / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
        (etc / "nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        (etc / "hosts").write_text("127.0.0.1 localhost\n")
        build_wheel(folder / "wheels")

    def add_dependencies(self, environment: str) -> None:
        """Lets a virtual environment of this root import the packages of the tests' environment."""
        version = "python{}.{}".format(*sys.version_info[:2])
        packages = self.path / environment.lstrip("/") / "lib" / version / "site-packages"
        (packages / "dependencies.pth").write_text("/dependencies\n")

    def run(self, script: str) -> "subprocess.CompletedProcess[str]":
        """Runs a shell script, which ends at its first error. Processes that it leaves are
        killed.
        """
        (self.path / "script").write_text(script)
        dependencies = {"R": str(self.path), "DEPENDENCIES": sysconfig.get_path("purelib")}
        return subprocess.run(
            [*_UNSHARE, "sh", "-euc", _SET_UP],
            env=_ENVIRONMENT | dependencies,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
