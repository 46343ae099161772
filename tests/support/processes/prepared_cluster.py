"""Clusters of PostgreSQL that were made once for all runs of the same code, to copy.

initdb takes 0.4 s of CPU and the migrations 0.3 s, a copy a tenth of it. `build/clusters` keeps
`initialized`, as initdb leaves it, and `data`, the data directory of a daemon after the migrations.
It has no administrator yet: the daemon creates one, as on a new installation.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import trio

from leadline.storage.engine import embedded_layout, embedded_postgres, migrate, migrations
from tests.support.processes.memory import in_memory

_ROOT = Path(__file__).parents[3]
_KEPT = _ROOT / "build/clusters"


def copy_prepared(data_dir: Path) -> None:
    """Makes a data directory that contains a migrated cluster with the owner of a real one."""
    subprocess.run(["cp", "-a", str(_prepared() / "data"), str(data_dir)], check=True)


@contextmanager
def initialized() -> Iterator[Path]:
    """Yields a folder with the files that initdb writes, which every user can read."""
    folder = Path(tempfile.mkdtemp(prefix="leadline-", dir=in_memory()))
    try:
        subprocess.run(["cp", "-r", f"{_prepared()}/initialized/.", str(folder)], check=True)
        subprocess.run(["chmod", "-R", "a+rX", str(folder)], check=True)
        yield folder
    finally:
        shutil.rmtree(folder)


@cache
def _prepared() -> Path:
    """Returns the prepared data directory. One process makes it; the others wait."""
    _KEPT.mkdir(parents=True, exist_ok=True)
    made = _KEPT / _version()
    with (_KEPT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.exists():
            for old in _KEPT.glob("*-*"):
                shutil.rmtree(old)
            _make(made)
    return made


def _version() -> str:
    """Returns a name for the code that decides the content of a new cluster."""
    digest = hashlib.sha256()
    sources = [module.__file__ for module in (embedded_layout, embedded_postgres, migrate)]
    files = [Path(str(source)) for source in sources]
    files += sorted(Path(migrations.__path__[0]).iterdir())
    for file in filter(Path.is_file, files):
        digest.update(file.read_bytes())
    return f"{embedded_postgres.MAJOR}-{digest.hexdigest()[:16]}"


def _make(made: Path) -> None:
    # PostgreSQL does not run as root, and its user may not reach the repository.
    folder = Path(tempfile.mkdtemp(prefix="leadline-", dir=in_memory()))
    try:
        folder.chmod(0o755)
        # A process of its own: a run of Trio may surround this call.
        command = [sys.executable, "-m", __name__, str(folder)]
        subprocess.run(command, check=True, cwd=_ROOT)
        for other in (folder / "data").iterdir():
            if other.name != "postgres":
                shutil.rmtree(other) if other.is_dir() else other.unlink()
        partial = made.with_name("partial-" + made.name)
        subprocess.run(["cp", "-a", str(folder), str(partial)], check=True)
        partial.rename(made)
    finally:
        shutil.rmtree(folder)


async def _fill(folder: Path) -> None:
    place = embedded_layout.make_place(folder / "data")
    place.runner.make_folder(place.cluster)
    await trio.run_process(place.initdb(place.cluster, durable=False), capture_stdout=True)
    command = ["cp", "-a", str(place.cluster), str(folder / "initialized")]
    await trio.run_process(command)
    async with embedded_postgres.running(place.data_dir, durable=False) as server:
        await migrate.migrate(server.dsn)


if __name__ == "__main__":
    trio.run(_fill, Path(sys.argv[1]))
