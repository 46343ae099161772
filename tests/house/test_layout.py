"""The shape of the house: what is packaged, how long a room may be, what a room may be called."""

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ("daemon", "http", "storage", "probes")
FORBIDDEN_NAMES = {"util", "utils", "common", "helpers", "helper", "manager", "misc"}


def house_files() -> list[Path]:
    return sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def functions(tree: ast.Module) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_every_folder_with_python_in_it_is_packaged() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    folders = {path.parent.relative_to(ROOT) for path in house_files()}
    found = {"leadline"} | {"leadline." + ".".join(folder.parts) for folder in folders}
    # http itself holds modules only once there are some; it is a namespace either way.
    assert found - listed == set(), "add these to packages in pyproject.toml"
    assert listed - found <= {"leadline.http"}, "these packages hold no Python"


def test_http_does_not_hide_the_standard_library() -> None:
    assert not (ROOT / "http" / "__init__.py").exists()


@pytest.mark.parametrize("path", house_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_is_small_and_says_what_it_keeps_true(path: Path) -> None:
    source = path.read_text()
    tree = ast.parse(source)
    assert path.stem not in FORBIDDEN_NAMES, "a name that says nothing"
    assert ast.get_docstring(tree), "the first line says what the file keeps true"
    assert source.count("\n") <= 500, "a file has at most 500 lines"
    for function in functions(tree):
        length = (function.end_lineno or 0) - function.lineno + 1
        assert length <= 70, f"{function.name} has {length} lines; 70 is a wall"
