"""Builds what is published: `python packaging/build_dist.py [--to FOLDER]`.

The folder gets a source distribution, the wheel that is built from it, and a bill of materials of
the wheel's libraries (CycloneDX). All are built from HEAD; files that are not committed are left
out. Two builds of one commit are equal byte by byte.
"""

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
BIN: Final = Path(sys.executable).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="folder (default dist)")
    for path in build(parser.parse_args().to):
        sys.stdout.write(f"{path}\n")


def build(to: Path) -> list[Path]:
    """Builds and checks the three files in the folder `to`. Returns their paths.

    Ends the process with the output of a build or checker that fails.
    """
    os.umask(0o022)
    stamp = int(_output("git", "log", "-1", "--format=%ct"))
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        tree.mkdir()
        archive = Path(folder) / "head.tar"
        _run("git", "archive", "--format=tar", "-o", archive, "HEAD")
        _unpack(archive.read_bytes(), tree)
        made = _backend("sdist", tree, Path(folder) / "sdist", stamp)
        source = to / made.name
        source.write_bytes(_timeless(made, stamp))
        unpacked = Path(folder) / "unpacked"
        unpacked.mkdir()
        _unpack(gzip.decompress(source.read_bytes()), unpacked)
        (inside,) = unpacked.iterdir()
        wheel = Path(shutil.copy(_backend("wheel", inside, Path(folder) / "wheel", stamp), to))
        bill = _bill(tree, to / f"{wheel.name.partition('-py3')[0]}.cdx.json")
    _run(BIN / "twine", "check", "--strict", source, wheel)
    _run(BIN / "check-wheel-contents", wheel)
    return [source, wheel, bill]


def _unpack(archive: bytes, to: Path) -> None:
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        tar.extractall(to, filter="data")


def _backend(kind: str, tree: Path, to: Path, stamp: int) -> Path:
    to.mkdir()
    code = f"from setuptools import build_meta; build_meta.build_{kind}({str(to)!r})"
    _run(sys.executable, "-c", code, cwd=tree, SOURCE_DATE_EPOCH=str(stamp))
    (made,) = to.iterdir()
    return made


def _timeless(source: Path, stamp: int) -> bytes:
    """Returns the source distribution with the instant of the commit, and without an owner.

    setuptools writes the instant and the user of the build.
    """
    written = BytesIO()
    with tarfile.open(source) as old, tarfile.open(fileobj=written, mode="w") as new:
        for entry in sorted(old.getmembers(), key=lambda one: one.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = stamp, 0, 0, "", ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            entry.pax_headers = {}
            new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    return gzip.compress(written.getvalue(), mtime=stamp)


def _bill(tree: Path, to: Path) -> Path:
    """Writes the bill of materials: each library with its version and the digests of its files."""
    command = [BIN / "cyclonedx-py", "requirements", "requirements/runtime.lock"]
    command += ["--pyproject", "pyproject.toml", "--mc-type", "application"]
    _run(*command, "--output-reproducible", "--of", "JSON", "-o", to.resolve(), cwd=tree)
    return to


def _run(*command: str | Path, cwd: Path = ROOT, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=cwd,
        check=False,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{Path(command[0]).name} failed:\n{done.stdout}")


def _output(*command: str) -> str:
    return subprocess.run(
        command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


if __name__ == "__main__":
    main()
