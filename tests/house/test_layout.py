"""Every folder is packaged, files and functions are short, and the name and docstring of a file
describe its content."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import ROOT, files, ident, nodes, text, tree

FILE_LINES_MOST = 500
FUNCTION_LINES_MOST = 70
FORBIDDEN_NAMES = {"util", "utils", "common", "helpers", "helper", "manager", "misc"}


def test_every_folder_with_python_in_it_is_packaged() -> None:
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    folders = {path.parent.relative_to(ROOT) for path in files()}
    found = {"leadline"} | {"leadline." + ".".join(folder.parts) for folder in folders}
    # http is a namespace package, which can be without modules of its own.
    assert found - listed == set(), "add these to packages in pyproject.toml"
    assert listed - found <= {"leadline.http"}, "these packages hold no Python"


def test_a_logger_has_the_name_of_its_component() -> None:
    """A log line names the same logger after its module has moved."""
    assert [ident(path) for path in files() if "getLogger(__name__)" in text(path)] == []


def test_http_does_not_hide_the_standard_library() -> None:
    assert not (ROOT / "http" / "__init__.py").exists()


def _violations(path: Path) -> Iterator[str]:
    if path.stem in FORBIDDEN_NAMES:
        yield f"{ident(path)}: the name does not tell the content"
    if not ast.get_docstring(tree(path)):
        yield f"{ident(path)}: the first line must state the guarantee of the file"
    if text(path).count("\n") > FILE_LINES_MOST:
        yield f"{ident(path)}: over {FILE_LINES_MOST} lines"
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or 0) - node.lineno + 1
            if length > FUNCTION_LINES_MOST:
                yield f"{ident(path)}: {node.name} has {length} lines, over {FUNCTION_LINES_MOST}"


def test_files_and_functions_are_short_and_named_for_their_content() -> None:
    assert [found for path in files() for found in _violations(path)] == []
