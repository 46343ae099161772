"""No class, function, table or column has a name that the vocabulary replaced.

The lists are `replaced_names.txt` and `replaced_sql_names.txt`. A name that another thing has by
right, or that is a term of the contract or of Python (`slice`, `global_silence`), is not in them.
"""

import ast
import re
from pathlib import Path
from typing import Final

from tests.house.sources import ROOT, files, ident, nodes


def _listed(file: str) -> frozenset[str]:
    return frozenset(Path(__file__).with_name(file).read_text().split())


REPLACED: Final = _listed("replaced_names.txt")
REPLACED_IN_SQL: Final = _listed("replaced_sql_names.txt")


def test_replaced_names_of_classes_and_functions_do_not_return() -> None:
    assert [
        f"{ident(path)}:{node.lineno}: {node.name}"
        for path in files()
        for node in nodes(path)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name in REPLACED
    ] == []


def test_replaced_names_of_tables_and_columns_do_not_return() -> None:
    migrations = sorted((ROOT / "storage/engine/migrations").glob("*.sql"))
    assert migrations
    assert [
        f"{ident(path)}:{number}: {word}"
        for path in migrations
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word in re.findall(r"[a-z_]+", line.partition("--")[0])
        if word in REPLACED_IN_SQL
    ] == []
