"""Faults of one process of Leadline, and the rolling restart of all."""

import os
import resource
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.support.processes.daemon_process import Daemon

from .faults import Fault, Scene
from .installation import AGENTS, Installation, set_clock

PACKAGE = Path(__file__).parents[2]
# How much more address space a process gets at its memory limit, and how many descriptors.
SPARE_BYTES, SPARE_DESCRIPTORS = 1 << 20, 1
CLOCK_STEPS = (-3600, -90, -1, 1, 90, 3600)
READY_SECONDS = 60.0


def _daemon(scene: Scene) -> Daemon:
    return scene.installation.processes[scene.part]


def _pid(scene: Scene) -> int:
    process = _daemon(scene).process
    assert process is not None
    return process.pid


def _kill(scene: Scene) -> None:
    _daemon(scene).kill()


def _start(scene: Scene) -> None:
    scene.installation.begin(scene.part)


def _stop(scene: Scene) -> None:
    _daemon(scene).stop()


def _freeze(scene: Scene) -> None:
    os.kill(_pid(scene), signal.SIGSTOP)


def _thaw(scene: Scene) -> None:
    os.kill(_pid(scene), signal.SIGCONT)


def _exhaust_descriptors(scene: Scene) -> str:
    pid = _pid(scene)
    used = max(int(entry) for entry in os.listdir(f"/proc/{pid}/fd"))
    _limit(pid, resource.RLIMIT_NOFILE, used + 1 + SPARE_DESCRIPTORS)
    return f"at {used}"


def _restore_descriptors(scene: Scene) -> None:
    _limit(_pid(scene), resource.RLIMIT_NOFILE, None)


def _limit(pid: int, kind: int, most: int | None) -> None:
    """Sets the soft limit of a process, to the hard one without `most`."""
    with suppress(ProcessLookupError):
        _, hard = resource.prlimit(pid, kind)
        resource.prlimit(pid, kind, (hard if most is None else most, hard))


def _exhaust_memory(scene: Scene) -> str:
    pid = _pid(scene)
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    size = pages * resource.getpagesize()
    _limit(pid, resource.RLIMIT_AS, size + SPARE_BYTES)
    return f"at {size >> 20} MiB"


def _restore_memory(scene: Scene) -> None:
    _limit(_pid(scene), resource.RLIMIT_AS, None)


def _step_clock(scene: Scene) -> str:
    seconds = scene.chance.choice(CLOCK_STEPS)
    set_clock(scene.installation.clock(scene.part), seconds)
    return f"by {seconds:+d} s"


def _right_clock(scene: Scene) -> None:
    set_clock(scene.installation.clock(scene.part), 0)


def _distort(scene: Scene) -> str:
    mode = scene.chance.choice(
        [
            f"delay {scene.chance.uniform(0.05, 1):.2f}",
            f"throttle {scene.chance.randrange(5_000, 50_000)}",
            f"truncate {scene.chance.randrange(200, 20_000)}",
        ]
    )
    scene.installation.relays[scene.part].say(mode)
    return mode


def _pass(scene: Scene) -> None:
    scene.installation.relays[scene.part].say("pass")


def _fill_disk(scene: Scene) -> None:
    fill(_daemon(scene).data_dir / "fill")


def _empty_disk(scene: Scene) -> None:
    (_daemon(scene).data_dir / "fill").unlink()


def fill(file: Path) -> None:
    """Takes all free space of a file system."""
    free = shutil.disk_usage(file.parent).free
    with file.open("wb") as stream:
        while free >= 4096:
            try:
                os.posix_fallocate(stream.fileno(), 0, free)
            except OSError:
                free = free // 2 if free > 1 << 20 else free - 4096
            else:
                break


COMMON = (
    Fault("kill", _kill, _start),
    Fault("freeze", _freeze, _thaw, weight=2),
    Fault("long freeze", _freeze, _thaw, (15, 30)),
    Fault("restart", _stop, _start, (0, 1)),
    Fault("descriptors", _exhaust_descriptors, _restore_descriptors, (3, 10)),
    Fault("memory", _exhaust_memory, _restore_memory, (3, 10)),
)
CLOCK = (Fault("clock", _step_clock, _right_clock, (3, 20), weight=2),)
RELAY = (Fault("relay", _distort, _pass, (3, 15), weight=2),)
DISK = (Fault("disk of the agent", _fill_disk, _empty_disk, (3, 20)),)


def faults_of(found: Installation, name: str) -> tuple[Fault, ...]:
    """Returns the faults that a process can have."""
    return (
        *COMMON,
        *(CLOCK if found.clock(name).exists() else ()),
        *(RELAY if name in found.relays else ()),
        *(DISK if name in AGENTS else ()),
    )


def _build(scene: Scene) -> None:
    """Makes a build with one more additive migration, which later starts use."""
    folder = scene.installation.folder / "build"
    if folder.exists():
        return
    copy = folder / "leadline"
    copy.mkdir(parents=True)
    for name in ("daemon", "http", "probes", "storage"):
        shutil.copytree(PACKAGE / name, copy / name)
    for file in PACKAGE.glob("*.py"):
        shutil.copy(file, copy)
    migrations = copy / "storage" / "engine" / "migrations"
    last = max(int(file.name[:4]) for file in migrations.glob("[0-9]*.sql"))
    text = "alter table monitors add column chaos integer;\n"
    (migrations / f"{last + 1:04d}_chaos.sql").write_text(text)
    for process in scene.installation.processes.values():
        process.environment["PYTHONPATH"] = str(folder)


def _roll(scene: Scene) -> None:
    """Restarts one process after the other, each when the one before is ready."""
    for name, process in scene.installation.processes.items():
        with scene.installation.locks[name]:
            process.stop()
            scene.installation.begin(name)
        latest = time.monotonic() + READY_SECONDS
        while name not in AGENTS and not process.is_ready() and time.monotonic() < latest:
            time.sleep(0.2)


ROLLING = (Fault("rolling restart", _build, _roll, (0, 0)),)
