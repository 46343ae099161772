"""The import law: daemon → http → storage → probes; an arrow may skip a floor, never climb."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = ["probes", "storage", "http", "daemon"]
STORAGE_FLOORS = ["rules", "tables", "views", "transactions"]
PURE_FORBIDDEN = {
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
PURE_PROBE_FILES = {"check", "condition", "result", "carrier"}
# What of the daemon an agent shares: none of it needs storage or http.
BESIDE_AN_AGENT = {
    "daemon.garbage",
    "daemon.limits",
    "daemon.notify",
    "daemon.sections",
    "daemon.supervisor",
    "daemon.wake",
    "daemon.way_out",
}
OUTWARD = {"socket.socket", "trio.open_tcp_stream", "trio.open_ssl_over_tcp_stream"}


def files() -> list[Path]:
    return sorted(path for floor in FLOORS for path in (ROOT / floor).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imported(path: Path) -> Iterator[tuple[str, bool]]:
    """(name, inside): what a file imports, house names without the `leadline.` prefix."""
    package = list(path.relative_to(ROOT).parent.parts)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, False
        elif isinstance(node, ast.ImportFrom):
            if node.level == 0:
                yield node.module or "", False
                continue
            base = package[: len(package) - (node.level - 1)]
            prefix = ".".join(base + ([node.module] if node.module else []))
            for alias in node.names:
                yield resolve(prefix, alias.name), True


def resolve(prefix: str, name: str) -> str:
    whole = ROOT.joinpath(*prefix.split("."), name) if prefix else ROOT / name
    is_module = whole.with_suffix(".py").exists() or whole.is_dir()
    return f"{prefix}.{name}".strip(".") if is_module else prefix


def rank(name: str) -> int:
    floor = name.split(".", maxsplit=1)[0]
    return FLOORS.index(floor) if floor in FLOORS else -1


def ident(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", files(), ids=ident)
def test_no_arrow_climbs(path: Path) -> None:
    mine = module_name(path)
    for name, inside in imported(path):
        assert not name.startswith("leadline"), "inside the house imports are relative"
        if inside:
            assert rank(name) <= rank(mine), f"{mine} climbs to {name}"
            if mine.startswith("probes"):
                assert name.startswith("probes"), f"probes import nothing of ours: {name}"
            if mine.startswith("daemon.agent") or mine in BESIDE_AN_AGENT:
                allowed = name.startswith(("probes", "daemon.agent")) or name in BESIDE_AN_AGENT
                assert allowed or name == "daemon", f"an agent has no {name}"


@pytest.mark.parametrize("path", sorted((ROOT / "storage").rglob("*.py")), ids=ident)
def test_inside_storage_arrows_go_down(path: Path) -> None:
    mine = module_name(path).split(".")
    floor = mine[1] if len(mine) > 2 else ""
    if floor not in STORAGE_FLOORS:
        return
    for name, inside in imported(path):
        parts = name.split(".")
        if not inside or len(parts) < 2 or parts[0] != "storage" or parts[1] not in STORAGE_FLOORS:
            continue
        assert STORAGE_FLOORS.index(parts[1]) <= STORAGE_FLOORS.index(floor), f"climbs: {name}"
        if floor == "tables" and len(parts) > 2:
            assert parts[1] != "tables", f"tables do not import each other: {name}"


def pure_files() -> list[Path]:
    probes = [ROOT / "probes" / f"{name}.py" for name in sorted(PURE_PROBE_FILES)]
    return sorted((ROOT / "storage" / "rules").rglob("*.py")) + [p for p in probes if p.exists()]


@pytest.mark.parametrize("path", pure_files(), ids=ident)
def test_rules_are_pure(path: Path) -> None:
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await), "no async in a rule"
    for name, inside in imported(path):
        assert inside or name.split(".")[0] not in PURE_FORBIDDEN, f"a rule imports {name}"
    source = path.read_text()
    for call in ("datetime.now", "datetime.utcnow", ".today("):
        assert call not in source, "now is an argument"


def test_there_are_no_circles() -> None:
    names = {module_name(path): path for path in files()}
    graph = {
        name: {n for n, inside in imported(path) if inside and n in names and n != name}
        for name, path in names.items()
    }
    # A package's __init__ that names its own rooms is a door, not a circle.
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail[trail.index(name) :], name))
        if name in done:
            return
        for other in graph[name]:
            visit(other, (*trail, name))
        done.add(name)

    for name in graph:
        visit(name, ())


SQL_ROOMS = (
    "storage/tables/",
    "storage/views/",
    "storage/pools.py",
    "storage/postgres",
    "storage/migrate",
    # Another tool's own file, as its importer reads it.
    "daemon/importers/kuma",
    # The one store of a box that has no database.
    "daemon/agent/ring.py",
)
SQL_STARTS = (
    "select ",
    "insert into ",
    "update ",
    "delete from ",
    "with ",
    "create ",
    "alter ",
    "lock table ",
)


@pytest.mark.parametrize("path", files(), ids=ident)
def test_sql_stands_only_where_it_belongs(path: Path) -> None:
    if ident(path).startswith(SQL_ROOMS):
        return
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            text = node.value.lstrip().lower()
            looks = text.startswith(SQL_STARTS) and (
                " from " in text or " set " in text or " into " in text or " table " in text
            )
            assert not looks, f"SQL outside its rooms: {node.value[:60]!r}"


@pytest.mark.parametrize("path", files(), ids=ident)
def test_limiters_are_made_in_one_place(path: Path) -> None:
    if path.stem in {"limits", "permits"}:
        return
    assert "CapacityLimiter(" not in path.read_text(), "limiters are made in limits and permits"


@pytest.mark.parametrize("path", files(), ids=ident)
def test_outward_sockets_are_opened_only_in_probes(path: Path) -> None:
    if ident(path).startswith("probes/"):
        return
    source = path.read_text()
    for call in ("open_tcp_stream", "httpx.AsyncClient(", "socket.create_connection", "urlopen("):
        assert call not in source, f"{call} outside probes"
