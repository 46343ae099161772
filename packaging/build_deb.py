"""Builds a Debian package from the tree: `python packaging/build_deb.py [REVISION]`.

The package contains a virtual environment with all libraries of `requirements/embedded.lock`, for
the Python of Debian. Two builds of one commit on one machine are equal byte by byte.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
HOME: Final = Path("usr/lib/leadline")
PROGRAM: Final = Path("/") / HOME / "bin" / "leadline"
# Where a package has the files that `leadline install` writes below /etc.
PLACES: Final = {
    "etc/systemd/system": "usr/lib/systemd/system",
    "etc/sysusers.d": "usr/lib/sysusers.d",
    "etc/tmpfiles.d": "usr/lib/tmpfiles.d",
}
OWN_HEAD: Final = "# Installed by the Debian package leadline, whose upgrade replaces this file."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("revision", nargs="?", default="1", help="Debian revision (default 1)")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python of the target")
    parser.add_argument("--to", type=Path, default=ROOT / "dist", help="folder of the package")
    given = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        sys.exit("dpkg-deb is missing: apt-get install dpkg")
    sys.stdout.write(f"{build(given.revision, given.python, given.to)}\n")


def build(revision: str, python: str, to: Path) -> Path:
    """Builds the package in the folder `to`. Returns its path."""
    os.umask(0o022)
    version = f"{_output(_uv(), 'version', '--short', '--no-sync', cwd=ROOT)}-{revision}"
    tree = ROOT / "build" / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    tree.mkdir(parents=True)
    name = _python_name(python)
    _install_libraries(tree, python, name)
    _install_files(tree)
    architecture = _output("dpkg", "--print-architecture")
    _write_control(tree, version, architecture, name)
    stamp = int(_output("git", "log", "-1", "--format=%ct", cwd=ROOT))
    for path in [*tree.rglob("*"), tree]:
        os.utime(path, (stamp, stamp), follow_symlinks=False)
    to.mkdir(parents=True, exist_ok=True)
    built = to / f"leadline_{version}_{architecture}.deb"
    _run(
        *("dpkg-deb", "--root-owner-group", "--uniform-compression", "-Zxz", "-z2"),
        *("--build", str(tree), str(built)),
        SOURCE_DATE_EPOCH=str(stamp),
    )
    return built


def _python_name(python: str) -> str:
    code = "import sys; print('python%d.%d' % sys.version_info[:2])"
    return _output(python, "-c", code)


def _install_libraries(tree: Path, python: str, name: str) -> None:
    """Creates the environment. Its scripts name the place where the package puts them."""
    home = tree / HOME
    _run(python, "-m", "venv", "--without-pip", "--symlinks", str(home))
    own = str(home / "bin" / "python")
    common = ("pip", "install", "-q", "--no-config", "--python", own)
    lock = ROOT / "requirements" / "embedded.lock"
    _run(_uv(), *common, "--require-hashes", "--no-build", "-r", str(lock))
    wheel = _wheel(tree)
    _run(_uv(), *common, "--no-deps", "--no-index", str(wheel))
    wheel.unlink()
    for path in (home / "bin").iterdir():
        if path.name not in ("leadline", "python", "python3", name):
            path.unlink()
    script = home / "bin" / "leadline"
    script.write_text(
        f"#!/{HOME}/bin/python -I\nimport sys\n\nfrom leadline.daemon.cli import main\n\n"
        "sys.exit(main())\n"
    )
    (home / "pyvenv.cfg").write_text(
        f"home = /usr/bin\ninclude-system-site-packages = false\nexecutable = /usr/bin/{name}\n"
    )
    for link in ("python", "python3"):
        (home / "bin" / link).unlink()
        (home / "bin" / link).symlink_to(name)
    (home / "bin" / name).unlink(missing_ok=True)
    (home / "bin" / name).symlink_to(f"/usr/bin/{name}")
    # They have instants and paths of the build.
    for path in [*home.rglob("direct_url.json"), *home.rglob("uv_cache.json")]:
        _forget(path)
    # Compiled by hash: the files need no time stamps, and two builds are equal.
    packages = home / "lib" / name / "site-packages"
    where = f"/{packages.relative_to(tree)}"
    _run(
        *(python, "-m", "compileall", "-q", "-j0", "--invalidation-mode", "unchecked-hash"),
        *("-s", str(packages), "-p", where, str(packages)),
        PYTHONHASHSEED="0",
    )


def _forget(path: Path) -> None:
    """Deletes a file of a distribution, and its line in the record."""
    record = path.with_name("RECORD")
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(line for line in lines if f"/{path.name}," not in line))
    path.unlink()


def _wheel(tree: Path) -> Path:
    folder = tree.parent / "deb-wheel"
    shutil.rmtree(folder, ignore_errors=True)
    _run(
        *(str(ROOT / ".venv/bin/python"), "-c"),
        "import sys; sys.path.insert(0, '.')\n"
        "from pathlib import Path\n"
        "from tests.support.processes.built_wheel import build_wheel\n"
        f"build_wheel(Path({str(_made(folder))!r}))",
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _install_files(tree: Path) -> None:
    """Writes the files of `leadline install` at the places of a package."""
    for role in ("all", "api", "agent"):
        _run(
            *(str(ROOT / ".venv/bin/leadline"), "install", "--role", role),
            *("--root", str(tree), "--program", str(PROGRAM)),
        )
    for source, target in PLACES.items():
        (tree / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(tree / source, tree / target)
        for path in (tree / target).iterdir():
            lines = path.read_text().splitlines(keepends=True)
            assert "leadline install" in lines[0], path
            path.write_text("".join([f"{OWN_HEAD}\n", *lines[1:]]))
            path.chmod(0o644)
    # The package's scripts create them, with their owners.
    shutil.rmtree(tree / "var")
    (tree / "usr/bin").mkdir(exist_ok=True)
    (tree / "usr/bin/leadline").symlink_to(f"../lib/{HOME.name}/bin/leadline")
    documents = tree / "usr/share/doc/leadline"
    documents.mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", documents / "copyright")
    shutil.copytree(ROOT / "extras", documents / "extras")


def _write_control(tree: Path, version: str, architecture: str, python: str) -> None:
    source, target = ROOT / "packaging" / "debian", tree / "DEBIAN"
    target.mkdir()
    kept = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
    size = sum(path.stat().st_size for path in kept) // 1024
    text = (source / "control.in").read_text()
    values = {"version": version, "architecture": architecture, "size": size, "python": python}
    (target / "control").write_text(text.format(**values))
    for name in ("preinst", "postinst", "prerm", "postrm"):
        shutil.copy(source / name, target / name)
        (target / name).chmod(0o755)
    edited = sorted(f"/{path.relative_to(tree)}" for path in (tree / "etc").rglob("*.toml"))
    (target / "conffiles").write_text("".join(f"{path}\n" for path in edited))


def _uv() -> str:
    return str(ROOT / ".venv" / "bin" / "uv")


def _output(*command: str, cwd: Path | None = None) -> str:
    return subprocess.run(
        command, cwd=cwd, check=True, stdout=subprocess.PIPE, text=True
    ).stdout.strip()


def _run(*command: str, **environment: str) -> None:
    subprocess.run(
        command, cwd=ROOT, check=True, env={**os.environ, **environment}, stdout=subprocess.DEVNULL
    )


if __name__ == "__main__":
    main()
