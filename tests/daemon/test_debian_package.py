"""The Debian package in a clean root: installed, started, upgraded, removed. Data is kept."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.support.processes.ports import free_port

ROOT: Final = Path(__file__).parents[2]
MIRROR: Final = "http://deb.debian.org/debian"
DATA: Final = "/var/lib/leadline"
# The library of the client is that of the root, so that the test needs no network of the host.
CLIENT: Final = """
import json, sys, urllib.request as u
base, password, what = sys.argv[1:]
def ask(method, path, body=None, cookie=""):
    head = {"Content-Type": "application/json", "Cookie": cookie}
    data = None if body is None else json.dumps(body).encode()
    with u.urlopen(u.Request(base + path, data, head, method=method), timeout=20) as answer:
        return answer, json.loads(answer.read() or b"null")
login = {"username": "admin@localhost", "password": password}
answer, _ = ask("POST", "/auth/local/login", login)
cookie = answer.headers["set-cookie"].partition(";")[0]
org = ask("GET", "/api/v1/organizations", cookie=cookie)[1][0]["id"]
project = ask("GET", f"/api/v1/organizations/{org}/projects", cookie=cookie)[1][0]["id"]
path = f"/api/v1/projects/{project}/monitors"
if what == "create":
    ask("POST", path, {"name": "Kept", "type": "push", "interval_seconds": 60}, cookie)
print([one["name"] for one in ask("GET", path, cookie=cookie)[1]])
"""

pytestmark = [pytest.mark.soak, pytest.mark.needs("debootstrap", "dpkg-deb", "unshare")]


class CleanRoot:
    """A Debian of its own in a folder, whose processes end with each call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.port = free_port()

    def run(self, script: str) -> str:
        """Runs a shell script as root of the folder. Returns its output."""
        done = subprocess.run(
            [
                *("unshare", "--mount", "--pid", "--fork", "--kill-child"),
                *("chroot", str(self.path), "sh", "-euc"),
                f"mount -t proc proc /proc; export DEBIAN_FRONTEND=noninteractive\n{script}",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, done.stdout[-3_000:]
        return done.stdout

    def while_running(self, script: str) -> str:
        """Runs a script while the daemon runs, as its unit starts it. The log is in /log."""
        return self.run(
            f"""
setpriv --reuid leadline --regid leadline --clear-groups env HOME=/ LEADLINE_LOG__FORMAT=json \\
  LEADLINE_SERVER__LISTEN=127.0.0.1:{self.port} \\
  leadline run --config /etc/leadline/leadline.toml > /log 2>&1 &
daemon=$!
for _ in $(seq 300); do
  grep -q '"msg":"ready"' /log && break
  kill -0 $daemon || {{ cat /log; exit 1; }}
  sleep 0.2
done
{script}
kill $daemon
wait $daemon
"""
        )

    def ask(self, password: str, what: str) -> str:
        (self.path / "client.py").write_text(CLIENT)
        url = f"http://127.0.0.1:{self.port}"
        return self.while_running(f"python3 /client.py {url} {password} {what}")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CleanRoot]:
    if os.geteuid() != 0:
        pytest.skip("needs root")
    path = tmp_path_factory.mktemp("debian")
    command = ["debootstrap", "--variant=minbase", "--include=python3,ca-certificates"]
    done = subprocess.run([*command, "bookworm", str(path), MIRROR], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2_000:]
    # The folder of pytest is closed to the user of the daemon, whose root it is.
    path.chmod(0o755)
    yield CleanRoot(path)
    shutil.rmtree(path, ignore_errors=True)


def built(folder: Path, revision: str) -> Path:
    done = subprocess.run(
        [sys.executable, "packaging/build_deb.py", revision, "--to", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return Path(done.stdout.strip())


def test_a_package_is_installed_started_upgraded_and_removed(root: CleanRoot) -> None:
    first, second = built(root.path, "1"), built(root.path, "2")
    again = built(root.path / "tmp", "1")
    assert first.read_bytes() == again.read_bytes(), "two builds are equal"

    root.run(f"dpkg -i /{first.name}")
    owners = root.run(f"stat -c '%U %a' {DATA} /var/backups/leadline /etc/leadline/leadline.toml")
    assert owners.splitlines() == ["leadline 700", "leadline 700", "root 640"]
    units = root.run("grep -h ^ExecStart= /usr/lib/systemd/system/leadline*")
    assert "ExecStart=/usr/lib/leadline/bin/leadline run" in units
    root.run("leadline check-config --config /etc/leadline/leadline.toml")

    root.while_running("true")
    found = re.search(r'"password":"([^"]+)"', (root.path / "log").read_text())
    assert found is not None, "the first start prints the password"
    assert "Kept" in root.ask(found[1], "create")
    key = (root.path / DATA[1:] / "encryption.key").read_bytes()

    (root.path / "etc/leadline/leadline.toml").open("a").write("# mine\n")
    root.run(f"dpkg -i /{second.name}")
    assert "0.3.8-2" in root.run("dpkg-query -W -f '${Version}' leadline")
    assert "# mine" in (root.path / "etc/leadline/leadline.toml").read_text()
    assert "Kept" in root.ask(found[1], "look")
    assert (root.path / DATA[1:] / "encryption.key").read_bytes() == key

    root.run("dpkg --remove leadline")
    assert not (root.path / "usr/lib/leadline").exists()
    assert (root.path / DATA[1:] / "encryption.key").read_bytes() == key
    root.run("dpkg --purge leadline")
    assert (root.path / DATA[1:] / "postgres").is_dir(), "a purge keeps the data"


def test_the_scripts_of_the_package_are_valid_shell() -> None:
    for name in ("preinst", "postinst", "prerm", "postrm"):
        path = ROOT / "packaging" / "debian" / name
        done = subprocess.run(["dash", "-n", str(path)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
