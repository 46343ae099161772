"""Two definitions do not have ten or more identical lines in a row."""

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from tests.house.sources import files, ident, nodes, text, tree

LINES_LEAST: Final = 10

# Each pair that is kept, with the reason.
KEPT: Final = {
    (
        "http/incidents/schemas.py: Incident",
        "http/status_pages/schemas/status_pages.py: IncidentDetail",
    ): "two shapes of the contract: a field of one for members does not become public by itself",
    (
        "storage/incidents/rows.py: IncidentRow",
        "storage/status_pages/queries/status_page_incidents.py: _Row",
    ): "the columns of two statements; that of the public reads no keys",
    (
        "probes/kinds/mysql.py: ",
        "probes/kinds/postgres.py: ",
    ): "two specifications of settings; each kind is one file and declares all of its settings",
}

Line = tuple[str, str]


@cache
def lines_of(path: Path) -> tuple[Line, ...]:
    """Returns (line without indentation, name of its definition) of each line with code."""
    passed_over = {number for first, last in _passed_over(path) for number in range(first, last)}
    names: dict[int, str] = {}
    _note_names(tree(path), "", names)
    return tuple(
        (" ".join(line.split()), names.get(number, ""))
        for number, line in enumerate(text(path).splitlines(), 1)
        if number not in passed_over and line.strip() and not line.lstrip().startswith("#")
    )


def _passed_over(path: Path) -> Iterator[tuple[int, int]]:
    """Yields the first line of each import and docstring, and the line after its last."""
    for node in nodes(path):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield node.lineno, (node.end_lineno or node.lineno) + 1
            case ast.Expr(value=ast.Constant(value=str())):
                yield node.lineno, (node.end_lineno or node.lineno) + 1


def _note_names(node: ast.AST, prefix: str, names: dict[int, str]) -> None:
    for child in ast.iter_child_nodes(node):
        name = prefix
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{child.name}" if prefix else child.name
            names |= dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), name)
        _note_names(child, name, names)


def pairs_of(sources: dict[str, Sequence[Line]], least: int) -> set[tuple[str, str]]:
    """Returns the pairs of "file: definition" that begin the same run of at least `least` lines."""
    places: dict[tuple[str, ...], list[tuple[str, int]]] = defaultdict(list)
    for name, lines in sources.items():
        words = [line for line, _ in lines]
        for start in range(len(words) - least + 1):
            places[tuple(words[start : start + least])].append((name, start))
    found = set()
    for same in places.values():
        for n, one in enumerate(same):
            for other in same[n + 1 :]:
                overlaps = one[0] == other[0] and other[1] - one[1] < least
                if not overlaps and not _goes_back(sources, one, other):
                    found.add((_label(sources, one), _label(sources, other)))
    return found


def _goes_back(
    sources: dict[str, Sequence[Line]], one: tuple[str, int], other: tuple[str, int]
) -> bool:
    """Returns whether the lines before are the same too: then the run begins earlier."""
    if not one[1] or not other[1]:
        return False
    return sources[one[0]][one[1] - 1][0] == sources[other[0]][other[1] - 1][0]


def _label(sources: dict[str, Sequence[Line]], place: tuple[str, int]) -> str:
    return f"{place[0]}: {sources[place[0]][place[1]][1]}"


def test_no_two_definitions_have_ten_identical_lines() -> None:
    found = pairs_of({ident(path): lines_of(path) for path in files()}, LINES_LEAST)
    assert sorted(found - KEPT.keys()) == [], "make one of both, or add the pair with its reason"
    assert sorted(KEPT.keys() - found) == [], "this pair is gone"


@pytest.mark.parametrize(("shared", "is_pair"), [(2, False), (3, True), (5, True)])
def test_a_run_of_the_least_length_is_a_pair(shared: int, is_pair: bool) -> None:
    same = [f"call({n})" for n in range(shared)]
    one = [("before()", "f"), *((line, "f") for line in same), ("after()", "f")]
    other = [*((line, "g") for line in same), ("end()", "g")]
    expected = {("one.py: f", "other.py: g")} if is_pair else set()
    assert pairs_of({"one.py": one, "other.py": other}, 3) == expected


def test_a_repeated_run_is_not_paired_with_itself() -> None:
    assert pairs_of({"one.py": [("x,", "")] * 5}, 3) == set()
