"""`leadline install`: the documented steps, from the wheel alone, on a machine without Leadline."""

import os
import shutil
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from leadline.daemon.cli import main
from leadline.daemon.cli.install_steps import packaged
from leadline.daemon.config.load import load
from tests.support.processes.clean_root import CleanRoot, can_make_environments
from tests.support.processes.documented_commands import blocks
from tests.support.processes.memory import in_memory

in_a_clean_root = pytest.mark.needs("root", "unshare", "systemd-analyze", "ip")
PROGRAM = "/opt/leadline/bin/leadline"
# Runs a unit's ExecStart as its user with the environment that systemd gives it, until it reports
# that it is ready. Then it asks the API, and stops it as systemd does.
START_UNIT = """
import os, pwd, re, shlex, signal, socket, subprocess, sys, urllib.request
unit = open(sys.argv[1]).read()
def setting(name):
    return re.search(rf"^{name}=(.*)$", unit, re.M)[1]
user = pwd.getpwnam(setting("User"))
state = "/var/lib/" + setting("StateDirectory").split()[0]
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.bind("/run/notify")
os.chmod("/run/notify", 0o777)
notify.settimeout(60)
daemon = subprocess.Popen(
    shlex.split(setting("ExecStart")), user=user.pw_uid, group=user.pw_gid, extra_groups=[],
    umask=0o077, cwd="/", env={"PATH": os.environ["PATH"], "NOTIFY_SOCKET": "/run/notify",
                               "STATE_DIRECTORY": state},
)
import threading
threading.Thread(target=lambda: daemon.wait() and os._exit(daemon.returncode), daemon=True).start()
while b"READY=1" not in notify.recv(4096).splitlines():
    pass
print("readyz", urllib.request.urlopen("http://127.0.0.1:8080/readyz").status, flush=True)
daemon.send_signal(signal.SIGTERM)
print("ended with", daemon.wait(), flush=True)
"""


def install(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["install", *arguments])


@pytest.fixture(scope="module")
def root() -> Iterator[CleanRoot]:
    """A clean root, in which the first two documented steps have installed the wheel."""
    if not can_make_environments():
        pytest.skip("needs /usr/bin/python3 of this version: apt-get install python3-venv")
    folder = Path(tempfile.mkdtemp(prefix="leadline-", dir=in_memory()))
    folder.chmod(0o755)
    root = CleanRoot(folder / "root")
    done = root.run("".join(steps("how-to/install.md")[:2]))
    assert done.returncode == 0, done.stdout
    root.add_dependencies("/opt/leadline")
    yield root
    shutil.rmtree(folder)


def steps(page: str) -> list[str]:
    first, *_ = blocks(page, "## Install")
    return first.splitlines(keepends=True)


@in_a_clean_root
@pytest.mark.soak
def test_the_documented_steps_install_a_daemon_that_starts(root: CleanRoot) -> None:
    # No systemd runs in the root, so START_UNIT starts the unit in place of `--now`.
    done = root.run("".join(steps("how-to/install.md")[2:]).replace("enable --now", "enable"))

    assert done.returncode == 0, done.stdout
    assert (root.path / "etc/systemd/system/multi-user.target.wants/leadline.service").is_symlink()
    (root.path / "start_unit").write_text(START_UNIT)
    unit = "/etc/systemd/system/leadline.service"
    verified = root.run(f"systemd-analyze verify {unit}")
    assert (verified.stdout, verified.returncode) == ("", 0)
    started = root.run(f"python3 /start_unit {unit}")
    assert started.returncode == 0, started.stdout
    assert started.stdout.splitlines()[-1] == "ended with 0"
    assert "readyz 200" in started.stdout.splitlines()
    state = root.path / "var/lib/leadline"
    assert state.stat().st_mode & 0o777 == 0o700
    owner = root.run("id -u leadline").stdout.strip()
    assert {path.stat().st_uid for path in (state, *state.iterdir())} == {int(owner)}
    config = root.path / "etc/leadline/leadline.toml"
    assert (config.stat().st_uid, config.stat().st_mode & 0o777) == (0, 0o640)


# Runs a unit's ExecStart as its user. The daemon does not run, so the command starts PostgreSQL.
RUN_ONESHOT = """
import os, pwd, re, shlex, subprocess, sys
unit = open(sys.argv[1]).read()
def setting(name):
    return re.search(rf"^{name}=(.*)$", unit, re.M)[1]
user = pwd.getpwnam(setting("User"))
sys.exit(subprocess.run(
    shlex.split(setting("ExecStart")), user=user.pw_uid, group=user.pw_gid, extra_groups=[],
    umask=0o077, cwd="/", env={"PATH": os.environ["PATH"],
                               "STATE_DIRECTORY": "/var/lib/" + setting("StateDirectory")},
).returncode)
"""


@in_a_clean_root
@pytest.mark.needs("openssl")
@pytest.mark.soak
def test_the_documented_steps_schedule_backups_that_run(root: CleanRoot) -> None:
    root.run(f"{PROGRAM} install")
    (root.path / "start_unit").write_text(START_UNIT)
    (root.path / "run_oneshot").write_text(RUN_ONESHOT)
    (root.path / "run/notify").unlink(missing_ok=True)
    started = root.run("python3 /start_unit /etc/systemd/system/leadline.service")
    assert started.returncode == 0, started.stdout
    schedule, restore = blocks("how-to/back-up.md", "## Scheduled backups")

    done = root.run(schedule.replace("enable --now", "enable"))

    assert done.returncode == 0, done.stdout
    wanted = root.path / "etc/systemd/system/timers.target.wants/leadline-backup.timer"
    assert wanted.is_symlink()
    units = [f"/etc/systemd/system/leadline-backup.{kind}" for kind in ("service", "timer")]
    verified = root.run(f"systemd-analyze verify {' '.join(units)}")
    assert (verified.stdout, verified.returncode) == ("", 0)
    backed_up = root.run(f"python3 /run_oneshot {units[0]}")
    assert backed_up.returncode == 0, backed_up.stdout
    (file,) = (root.path / "var/backups/leadline").iterdir()
    assert f"verified: /var/backups/leadline/{file.name}, " in backed_up.stdout
    assert file.stat().st_mode & 0o777 == 0o600

    # Restored by root, started by the unit as its user.
    key = (root.path / "var/lib/leadline/encryption.key").read_text()
    script = restore.replace("leadline-TIME.backup", file.name)
    restored = root.run("\n".join(without_systemctl(script)))
    assert restored.returncode == 0, restored.stdout
    (root.path / "run/notify").unlink()
    started = root.run("python3 /start_unit /etc/systemd/system/leadline.service")
    assert "readyz 200" in started.stdout.splitlines(), started.stdout
    assert "password" not in started.stdout, "the accounts were restored"
    assert (root.path / "var/lib/leadline/encryption.key").read_text() == key


def without_systemctl(script: str) -> list[str]:
    """Leaves out the commands that need a running systemd."""
    lines = script.splitlines()
    assert [line for line in lines if line.startswith("systemctl")] == [
        "systemctl stop leadline",
        "systemctl start leadline",
    ]
    return [line for line in lines if not line.startswith("systemctl")]


@in_a_clean_root
def test_the_documented_steps_install_an_agent(root: CleanRoot) -> None:
    (root.path / "token").write_text("t" * 40)

    done = root.run("".join(steps("how-to/agents.md")[2:]))

    assert done.returncode == 0, done.stdout
    unit = "/etc/systemd/system/leadline-agent.service"
    verified = root.run(f"systemd-analyze verify {unit}")
    assert (verified.stdout, verified.returncode) == ("", 0)
    credentials = "export CREDENTIALS_DIRECTORY=/etc/leadline/credentials"
    # It cannot reach the server, so the configuration is read in its place.
    checked = root.run(f"{credentials}; {PROGRAM} check-config --config /etc/leadline/agent.toml")
    assert checked.returncode == 0, checked.stdout


def test_a_second_run_changes_no_file(tmp_path: Path) -> None:
    install("--root", str(tmp_path), "--program", PROGRAM)
    before = contents(tmp_path)

    done = install("--root", str(tmp_path), "--program", PROGRAM)

    assert done.exit_code == 0
    verbs = {line.split()[0] for line in done.output.splitlines() if str(tmp_path / "") in line}
    assert verbs - {"systemctl"} == {"keep"}
    assert contents(tmp_path) == before


def test_an_edited_configuration_is_kept_and_an_old_unit_is_replaced(tmp_path: Path) -> None:
    install("--root", str(tmp_path), "--program", PROGRAM)
    config = tmp_path / "etc/leadline/leadline.toml"
    config.write_text("data_dir = '/srv/leadline'\n")
    unit = tmp_path / "etc/systemd/system/leadline.service"
    unit.write_text("[Service]\nExecStart=/old\n")

    done = install("--root", str(tmp_path), "--program", "/srv/leadline")

    assert config.read_text() == "data_dir = '/srv/leadline'\n"
    assert "\nExecStart=/srv/leadline run --config" in unit.read_text()
    assert f"replace   {unit}\n" in done.output


def test_a_dry_run_writes_no_file(tmp_path: Path) -> None:
    done = install("--root", str(tmp_path), "--program", PROGRAM, "--dry-run")
    assert done.exit_code == 0
    assert f"create    {tmp_path}/etc/leadline/leadline.toml\n" in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("role", "unit", "config"),
    [
        ("all", "leadline", "leadline.toml"),
        ("worker", "leadline@worker", "leadline.toml"),
        ("agent", "leadline-agent", "agent.toml"),
    ],
)
def test_each_role_gets_its_unit_and_the_command_that_starts_it(
    tmp_path: Path, role: str, unit: str, config: str
) -> None:
    done = install("--root", str(tmp_path), "--program", PROGRAM, "--role", role)
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].strip() == f"systemctl --root={tmp_path} enable {unit}"
    assert (tmp_path / "etc/leadline" / config).exists()
    template = unit.replace("@worker", "@")
    text = (tmp_path / f"etc/systemd/system/{template}.service").read_text()
    assert f"--config /etc/leadline/{config}\n" in text


@pytest.mark.parametrize("name", ["leadline.toml", "agent.toml"])
def test_every_line_of_an_example_is_a_key_that_loads(name: str, tmp_path: Path) -> None:
    lines = packaged(name).splitlines()
    active = [line.removeprefix("# ") if is_key(line) else line for line in lines]
    document = tomllib.loads("\n".join(active))
    assert len(document) > 2
    file = tmp_path / name
    given = "\n".join(active)
    for key in ("admin_password", "smtp_password", "token"):
        given = given.replace(f'{key} = ""', f'{key} = "{"x" * 40}"')
    file.write_text(given)
    load(file, {})
    file.write_text("\n".join(lines))
    load(file, {})


def is_key(line: str) -> bool:
    return line.startswith("# ") and " = " in line


@pytest.mark.skipif(os.geteuid() != 0, reason="writes the group of another user")
def test_the_owners_in_an_image_come_from_its_passwd_file(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("leadline:x:4711:4712::/:/usr/sbin/nologin\n")
    (tmp_path / "etc/group").write_text("leadline:x:4712:\n")
    install("--root", str(tmp_path), "--program", PROGRAM)
    state = (tmp_path / "var/lib/leadline").stat()
    assert (state.st_uid, state.st_gid) == (4711, 4712)
    config = (tmp_path / "etc/leadline/leadline.toml").stat()
    assert (config.st_uid, config.st_gid) == (0, 4712)


def test_a_path_that_cannot_be_written_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "etc").write_text("a file")
    done = install("--root", str(tmp_path), "--program", PROGRAM)
    assert done.exit_code == 1
    assert done.output.splitlines()[-1] == f"leadline: {tmp_path}/etc/sysusers.d: Not a directory"


def test_a_relative_program_is_refused(tmp_path: Path) -> None:
    done = install("--root", str(tmp_path), "--program", "bin/leadline")
    assert done.exit_code == 2
    assert "--program: must be an absolute path" in done.output


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("program", "word"),
    [
        ("/opt/leadline/bin/leadline", "/opt/leadline/bin/leadline"),
        ("/opt/100%i/leadline", "/opt/100%%i/leadline"),
        ("/opt/my tools/leadline", '"/opt/my tools/leadline"'),
        ('/opt/a"b\\c/leadline', '"/opt/a\\"b\\\\c/leadline"'),
    ],
)
def test_the_program_is_one_word_of_the_unit(tmp_path: Path, program: str, word: str) -> None:
    done = install("--root", str(tmp_path), "--program", program)
    assert done.exit_code == 0, done.output
    unit = (tmp_path / "etc/systemd/system/leadline.service").read_text()
    assert f"\nExecStart={word} run --config /etc/leadline/leadline.toml\n" in unit


def test_a_program_with_a_line_break_is_refused(tmp_path: Path) -> None:
    done = install("--root", str(tmp_path), "--program", "/opt/a\nUser=root/leadline")
    assert (done.exit_code, "--program" in done.output) == (1, True)
    assert list(tmp_path.iterdir()) == []


def test_links_of_an_image_lead_nowhere_outside(tmp_path: Path) -> None:
    """An absolute link, and one with more .. than the image has folders."""
    image, outside = tmp_path / "image", tmp_path / "outside"
    (image / "etc").mkdir(parents=True)
    outside.mkdir()
    (image / "etc/leadline").symlink_to(outside)
    (image / "etc/systemd").symlink_to("../" * 30 + "usr/systemd")
    (image / "var").symlink_to("/data")
    done = install("--root", str(image), "--program", PROGRAM)
    assert done.exit_code == 0, done.output
    assert list(outside.iterdir()) == []
    inside = image / outside.relative_to("/")
    assert (inside / "leadline.toml").read_text() == packaged("leadline.toml")
    assert (image / "usr/systemd/system/leadline.service").exists()
    assert (image / "data/lib/leadline").is_dir()
    again = install("--root", str(image), "--program", PROGRAM)
    assert "create" not in again.output
    assert "replace" not in again.output


def test_a_masked_unit_stays_masked(tmp_path: Path) -> None:
    folder = tmp_path / "etc/systemd/system"
    folder.mkdir(parents=True)
    (folder / "leadline-backup.timer").symlink_to("/dev/null")
    done = install("--root", str(tmp_path), "--program", PROGRAM)
    assert done.exit_code == 0, done.output
    assert os.readlink(folder / "leadline-backup.timer") == "/dev/null"
    assert "stays masked" in done.output
