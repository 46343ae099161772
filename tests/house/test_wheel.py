"""What is installed is what is in the tree: an editable install finds files that a wheel lacks."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("daemon", "http", "storage", "probes")
SHIPPED = {".py", ".sql", ".html", ".css", ".js", ".svg", ".png", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel that is built from a copy of the tree, without any network."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = folder / "tree"
    tree.mkdir()
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "MANIFEST.in",
        "py.typed",
        "__init__.py",
    ):
        shutil.copy(ROOT / name, tree / name)
    for floor in FLOORS:
        shutil.copytree(
            ROOT / floor, tree / floor, ignore=shutil.ignore_patterns("__pycache__", "*.pyc")
        )
    code = f"from setuptools import build_meta; print(build_meta.build_wheel({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tree, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    (built,) = folder.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())


def test_every_file_of_the_house_is_in_the_wheel(wheel: set[str]) -> None:
    tree = {
        f"leadline/{path.relative_to(ROOT).as_posix()}"
        for floor in FLOORS
        for path in (ROOT / floor).rglob("*")
        if path.suffix in SHIPPED and "__pycache__" not in path.parts
    }
    assert tree - wheel == set()


def test_nothing_of_the_tests_or_of_the_work_place_is_in_it(wheel: set[str]) -> None:
    assert all(name.startswith(("leadline/", "leadline-")) for name in wheel)
    assert not [name for name in wheel if "/tests/" in name or "/data/" in name]
