"""Imports point down: daemon → http → storage → probes. Each rule lists every violation."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.house.order import PURE_MODULES, is_pure, place_of
from tests.house.sources import (
    files,
    ident,
    imported,
    module_name,
    nodes,
    text,
)

IMPURE: Final = {
    "trio",
    "time",
    "random",
    "secrets",
    "logging",
    "psycopg",
    "os",
    "socket",
    "httpx",
}


def _pure_files() -> list[Path]:
    return [path for path in files() if is_pure(module_name(path))]


def _impurities(path: Path) -> Iterator[str]:
    if any(isinstance(node, ast.AsyncFunctionDef | ast.Await) for node in nodes(path)):
        yield f"{ident(path)}: a rule is not async"
    for name, inside in imported(path):
        if not inside and name.split(".")[0] in IMPURE:
            yield f"{ident(path)}: a rule does not import {name}"
    for call in ("datetime.now", "datetime.utcnow", ".today("):
        if call in text(path):
            yield f"{ident(path)}: now is an argument, not {call}"


def test_rules_are_pure() -> None:
    assert len(_pure_files()) > len(PURE_MODULES)
    assert [found for path in _pure_files() for found in _impurities(path)] == []


def test_no_module_imports_itself_through_others() -> None:
    names = {module_name(path): path for path in files()}
    graph = {
        name: {n for n, inside in imported(path) if inside and n in names and n != name}
        for name, path in names.items()
    }
    done: set[str] = set()
    cycles: list[str] = []

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            cycles.append(" → ".join((*trail[trail.index(name) :], name)))
            return
        if name in done:
            return
        for other in sorted(graph[name]):
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())
    assert cycles == []


# Files outside storage whose database is SQLite.
SQLITE_FILES: Final = {
    # Reads the database file of another tool.
    "http/importers/kuma_file.py",
    # The disk buffer of an agent.
    "daemon/agent/ring_buffer.py",
}
SQL_STARTS: Final = (
    "select ",
    "insert into ",
    "update ",
    "delete from ",
    "with ",
    "create ",
    "alter ",
    "lock table ",
)


def _misplaced_sql(path: Path) -> Iterator[str]:
    docstrings = {
        id(node.body[0].value)
        for node in nodes(path)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in nodes(path):
        if (
            not isinstance(node, ast.Constant)
            or not isinstance(node.value, str)
            or id(node) in docstrings
        ):
            continue
        words = node.value.lstrip().lower()
        if words.startswith(SQL_STARTS) and any(
            word in words for word in (" from ", " set ", " into ", " table ")
        ):
            yield f"{ident(path)}:{node.lineno}: SQL outside its folders: {node.value[:60]!r}"


def _may_contain_sql(path: Path) -> bool:
    place = place_of(module_name(path))
    if place is None or place.layer != "storage":
        return ident(path) in SQLITE_FILES
    return place.feature == "engine" or place.sublayer in {"tables", "queries"}


def test_sql_is_only_in_its_folders() -> None:
    others = (path for path in files() if not _may_contain_sql(path))
    assert [found for path in others for found in _misplaced_sql(path)] == []


def test_limiters_are_made_in_limits_and_admission_control() -> None:
    assert [
        f"{ident(path)}: makes a CapacityLimiter"
        for path in files()
        if path.stem not in {"limits", "admission_control"} and "CapacityLimiter(" in text(path)
    ] == []


def test_outward_sockets_are_opened_only_in_probes() -> None:
    calls = ("open_tcp_stream", "httpx.AsyncClient(", "socket.create_connection", "urlopen(")
    assert [
        f"{ident(path)}: {call}"
        for path in files()
        if not ident(path).startswith("probes/")
        for call in calls
        if call in text(path)
    ] == []
