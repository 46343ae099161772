"""Folders have neither too many nor too few entries, and tests and templates are near the code that
they belong to."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.house.order import FEATURES
from tests.house.sources import LAYERS, ROOT, files, ident, text
from tests.support.run.kinds import KINDS, kind_of

FEWEST_ENTRIES: Final = 3
MOST_ENTRIES: Final = 30
DEEPEST: Final = 4
# Numbered SQL files: their number grows with the releases.
UNBOUNDED: Final = {"storage/engine/migrations"}
# Features whose tests are in the folder of another feature.
TESTED_ELSEWHERE: Final = {"wire", "ui", "home", "auth"}
# Folders whose tests are of one kind, which their names need not repeat.
FOLDERS_OF_ONE_KIND: Final = {"daemon", "house", "journeys", "probes"}
_RENDERED: Final = re.compile(r"""["']([a-z_/]+\.html)["']""")


def _folders() -> Iterator[Path]:
    for layer in LAYERS:
        for path in (ROOT / layer, *(ROOT / layer).rglob("*")):
            if path.is_dir() and path.name != "__pycache__":
                yield path


def _entries(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.iterdir()
        if path.name != "__pycache__" and not path.name.startswith(".")
    ]


def test_folders_have_few_entries() -> None:
    assert sorted(_crowded_folders()) == []


def _crowded_folders() -> Iterator[str]:
    tests = [
        path
        for path in (ROOT / "tests").rglob("*")
        if path.is_dir() and not {"node_modules", "__pycache__"} & set(path.parts)
    ]
    for folder in (*_folders(), *tests):
        count = len(_entries(folder))
        name = folder.relative_to(ROOT).as_posix()
        if count > MOST_ENTRIES and name not in UNBOUNDED:
            yield f"{name}: more than {MOST_ENTRIES} entries"
        if name.startswith("tests/"):
            continue
        if count < FEWEST_ENTRIES and _holds_python(folder) and not _is_feature(folder):
            yield f"{name}: fewer than {FEWEST_ENTRIES} entries"
        if len(folder.relative_to(ROOT).parts) >= DEEPEST:
            yield f"{name}: deeper than {DEEPEST} levels with its files"


def _holds_python(folder: Path) -> bool:
    return any(path.suffix == ".py" for path in _entries(folder))


def _is_module(path: Path) -> bool:
    return path.is_dir() or (path.suffix == ".py" and path.name != "__init__.py")


def _is_feature(folder: Path) -> bool:
    """A feature has a folder however small it is, as its name is the same in each layer."""
    layer, *rest = folder.relative_to(ROOT).parts
    return len(rest) == 1 and rest[0] in FEATURES[layer]


def test_no_package_has_one_module() -> None:
    assert (
        sorted(
            f"{folder.relative_to(ROOT).as_posix()}: has one module"
            for folder in _folders()
            if _holds_python(folder)
            and len([path for path in _entries(folder) if _is_module(path)]) == 1
        )
        == []
    )


def test_a_feature_has_a_folder_of_tests() -> None:
    assert (
        sorted(
            f"tests/{name}"
            for layer in ("storage", "http")
            for name in FEATURES[layer]
            if name not in TESTED_ELSEWHERE and not (ROOT / "tests" / name).is_dir()
        )
        == []
    )


def test_a_file_of_tests_has_a_kind() -> None:
    """The kind chooses the database, the number of examples and the tier of a test."""
    assert (
        sorted(
            f"{path.relative_to(ROOT).as_posix()}: the last word of its name is none of {KINDS}"
            for path in (ROOT / "tests").rglob("test_*.py")
            if kind_of(path) not in {*KINDS, *FOLDERS_OF_ONE_KIND}
        )
        == []
    )


def test_a_template_is_rendered_in_its_folder() -> None:
    assert sorted(_distant_templates()) == []


def _distant_templates() -> Iterator[str]:
    for path in files():
        if not ident(path).startswith("http/"):
            continue
        for name in sorted(set(_RENDERED.findall(text(path)))):
            folder = path.parent.relative_to(ROOT / "http").as_posix()
            if Path(name).parent.as_posix() not in {folder, "ui", "."}:
                yield f"{ident(path)}: renders {name}"
