"""The files of the product, each read and parsed once per process."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
# From the lowest layer to the highest.
LAYERS: Final = ("probes", "storage", "http", "daemon")


@cache
def files() -> tuple[Path, ...]:
    return tuple(sorted(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py")))


def ident(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def text(path: Path) -> str:
    return path.read_text()


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


@cache
def imported(path: Path) -> tuple[tuple[str, bool], ...]:
    """Returns (name, inside) of each import; names of the product lack the prefix `leadline.`."""
    return tuple(_imported(path))


def _imported(path: Path) -> Iterator[tuple[str, bool]]:
    package = list(path.relative_to(ROOT).parent.parts)
    for node in nodes(path):
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
                yield _resolved(prefix, alias.name), True


@cache
def imported_names(path: Path) -> tuple[tuple[str, str], ...]:
    """Returns (module, name) of each definition that is imported from inside the product."""
    return tuple(_imported_names(path))


def _imported_names(path: Path) -> Iterator[tuple[str, str]]:
    package = list(path.relative_to(ROOT).parent.parts)
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = package[: len(package) - (node.level - 1)]
            module = ".".join(base + ([node.module] if node.module else []))
            for alias in node.names:
                yield module, alias.name


@cache
def _resolved(prefix: str, name: str) -> str:
    whole = ROOT.joinpath(*prefix.split("."), name) if prefix else ROOT / name
    is_module = whole.with_suffix(".py").exists() or whole.is_dir()
    return f"{prefix}.{name}".strip(".") if is_module else prefix
