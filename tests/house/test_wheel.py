"""The wheel contains the files of the tree. An editable install finds files that a wheel could
lack."""

import zipfile
from pathlib import Path

import pytest

from tests.support.processes.built_wheel import FOLDERS, build_wheel

ROOT = Path(__file__).parents[2]
SHIPPED = {".py", ".sql", ".html", ".css", ".js", ".svg", ".png", ".typed"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """The names in a wheel of the tree."""
    built = build_wheel(tmp_path_factory.mktemp("wheel"))
    return set(zipfile.ZipFile(built).namelist())


def test_every_product_file_is_in_the_wheel(wheel: set[str]) -> None:
    tree = {
        f"leadline/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.suffix in SHIPPED and "__pycache__" not in path.parts
    }
    assert tree - wheel == set()


def test_every_file_that_commands_write_is_in_the_wheel(wheel: set[str]) -> None:
    written = {
        f"leadline/{folder}/{path.name}"
        for folder in ("systemd", "extras")
        for path in (ROOT / folder).iterdir()
    }
    assert "leadline/systemd/leadline.service" in written
    assert "leadline/extras/compose.yaml" in written
    assert written - wheel == set()


def test_the_glossary_of_the_help_screen_is_in_the_wheel(wheel: set[str]) -> None:
    assert "leadline/docs/glossary.md" in wheel


def test_tests_and_working_files_are_not_in_the_wheel(wheel: set[str]) -> None:
    assert all(name.startswith(("leadline/", "leadline-")) for name in wheel)
    assert not [name for name in wheel if "/tests/" in name or "/data/" in name]
