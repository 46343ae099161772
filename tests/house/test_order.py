"""Imports follow the order of layers, features and sublayers, and rules are pure.

Each rule is one test that lists every violation.
"""

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.house.order import UNDIVIDED, Place, is_table, place_of
from tests.house.sources import (
    LAYERS,
    ROOT,
    files,
    ident,
    imported,
    imported_names,
    module_name,
    tree,
)

# The features that run on the host of an agent, which has no database and no HTTP server.
OF_AGENT: Final = {"agent", "runtime", "config"}


def _imports() -> Iterator[tuple[Path, str, str]]:
    """Yields (file, importing module, imported module) for each import inside the product."""
    for path in files():
        importer = module_name(path)
        for name, inside in imported(path):
            if inside and name != importer:
                yield path, importer, name


def _placed_imports() -> Iterator[tuple[Path, Place, Place, str]]:
    for path, importer, name in _imports():
        one, two = place_of(importer), place_of(name)
        if one is not None and two is not None:
            yield path, one, two, name


def test_every_module_has_a_place() -> None:
    assert (
        sorted(
            f"{ident(path)}: in no list of tests/house/order.py"
            for path in files()
            if module_name(path) not in LAYERS and place_of(module_name(path)) is None
        )
        == []
    )


def test_imports_point_to_lower_layers() -> None:
    assert sorted(_upward_layers()) == []


def _upward_layers() -> Iterator[str]:
    for path in files():
        layer = module_name(path).partition(".")[0]
        for name, inside in imported(path):
            other = name.partition(".")[0]
            if other == "leadline":
                yield f"{ident(path)}: {name} must be a relative import"
            if inside and other in LAYERS and LAYERS.index(other) > LAYERS.index(layer):
                yield f"{ident(path)}: imports {name} from a higher layer"
            if inside and layer == "probes" and other != "probes":
                yield f"{ident(path)}: probes import nothing else of Leadline, not {name}"


def test_imports_point_to_earlier_features() -> None:
    assert (
        sorted(
            f"{ident(path)}: imports {name} from a later feature"
            for path, one, two, name in _placed_imports()
            if one.layer == two.layer and two.feature_rank > one.feature_rank
        )
        == []
    )


def test_imports_point_to_lower_sublayers() -> None:
    assert sorted(_upward_sublayers()) == []


def _upward_sublayers() -> Iterator[str]:
    for path, one, two, name in _placed_imports():
        if one.layer != two.layer or not one.sublayer or not two.sublayer:
            continue
        # The screens of a feature may show what the screens of an earlier one show.
        if one.layer == "http" and one.feature != two.feature:
            continue
        if two.sublayer_rank > one.sublayer_rank:
            yield f"{ident(path)}: imports {name} from a higher sublayer"


def test_public_pages_import_neither_routes_nor_console() -> None:
    assert (
        sorted(
            f"{ident(path)}: a public page imports {name}"
            for path, one, two, name in _placed_imports()
            if one.sublayer == "public"
            and two.layer == "http"
            and two.sublayer in {"routes", "console", "form"}
        )
        == []
    )


def test_http_imports_no_tables() -> None:
    assert (
        sorted(
            f"{ident(path)}: imports {name}"
            for path, importer, name in _imports()
            if importer.startswith("http.") and is_table(name)
        )
        == []
    )


def test_tables_import_no_other_tables() -> None:
    assert (
        sorted(
            f"{ident(path)}: imports {name}, another table module"
            for path, importer, name in _imports()
            if is_table(importer) and is_table(name) and not path.name.startswith("__init__")
        )
        == []
    )


def test_an_agent_contains_neither_storage_nor_http() -> None:
    assert (
        sorted(
            f"{ident(path)}: an agent does not contain {name}"
            for path, importer, name in _imports()
            if _is_of_agent(importer) and not (_is_of_agent(name) or name in {"daemon", ""})
        )
        == []
    )


def _is_of_agent(module: str) -> bool:
    place = place_of(module)
    if module.partition(".")[0] == "probes":
        return True
    return place is not None and place.layer == "daemon" and place.feature in OF_AGENT


def test_runtime_imports_no_other_module_of_leadline() -> None:
    assert (
        sorted(
            f"{ident(path)}: imports {name}"
            for path, importer, name in _imports()
            if importer.startswith("daemon.runtime") and not name.startswith("daemon.runtime")
        )
        == []
    )


def test_folders_import_each_other_in_one_direction() -> None:
    graph: dict[str, set[str]] = {}
    for _, importer, name in _imports():
        one, two = _folder(importer), _folder(name)
        if one != two:
            graph.setdefault(one, set()).add(two)
            graph.setdefault(two, set())
    assert sorted(" ↔ ".join(group) for group in _cycles(graph)) == []


def _folder(module: str) -> str:
    """A sublayer is a node of the graph, whether it is a folder or one module."""
    place = place_of(module)
    if place is not None and place.sublayer:
        return f"{place.layer}.{place.feature}.{place.sublayer}"
    path = ROOT.joinpath(*module.split("."))
    return module if path.is_dir() else module.rpartition(".")[0]


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Returns the strongly connected components with more than one member (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append(sorted(group))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def test_row_structs_that_leave_their_feature_are_in_rows() -> None:
    assert sorted(_rows_that_leave()) == []


def _rows_that_leave() -> Iterator[str]:
    for path in files():
        importer = place_of(module_name(path))
        for module, name in imported_names(path):
            origin = place_of(module)
            if origin is None or origin.layer != "storage" or origin.sublayer != "tables":
                continue
            if importer is not None and importer.feature == origin.feature:
                continue
            if name in _structs_of(module):
                yield f"{ident(path)}: {name} of {module} is used outside its feature"


def _structs_of(module: str) -> set[str]:
    path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
    if not path.exists():
        return set()
    return {node.name for node in tree(path).body if isinstance(node, ast.ClassDef)}


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("storage.core.instant", Place("storage", "core")),
        ("storage.gate.rules.gate_evaluation", Place("storage", "gate", "rules")),
        ("storage.changes.tables", Place("storage", "changes", "tables")),
        ("storage.gate", Place("storage", "gate")),
        ("storage.gate.shapes.x", None),
        ("storage.nowhere", None),
        ("http.ui.plots.axis", Place("http", "ui")),
        ("daemon.loops.janitor", Place("daemon", "loops")),
        ("probes.runner", Place("probes", "runner")),
        ("storage", None),
    ],
)
def test_a_place_is_read_from_a_name(module: str, expected: Place | None) -> None:
    assert place_of(module) == expected


def test_a_cycle_is_found_through_other_folders() -> None:
    edges: Sequence[tuple[str, str]] = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")]
    graph = {name: {two for one, two in edges if one == name} for name in "abcd"}
    assert _cycles(graph) == [["a", "b", "c"]]


def test_undivided_features_are_features() -> None:
    for layer, names in UNDIVIDED.items():
        assert all(place_of(f"{layer}.{name}") for name in names)
