"""Finds the places of a Python file at which one small change makes another program."""

import ast
import copy
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple

_COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.Mod: ast.Add,
}
# Types, and decorators, most of which are of a framework.
_SKIPPED_FIELDS: Final = {"annotation", "returns", "decorator_list"}
_SMALL: Final = 1_000


class Place(NamedTuple):
    """One change: `text` replaces the bytes from `start` to `end`. Lines count from 1."""

    kind: str
    line: int
    end_line: int
    statement_line: int
    start: int
    end: int
    text: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def places(source: bytes) -> list[Place]:
    """Returns all places of a file in their order."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    found = []
    for node, statement_line in _nodes(ast.parse(source), 1):
        for target, kind, text in _changes(node):
            assert target.end_lineno is not None
            assert target.end_col_offset is not None
            start = starts[target.lineno - 1] + target.col_offset
            end = starts[target.end_lineno - 1] + target.end_col_offset
            found.append(
                Place(kind, target.lineno, target.end_lineno, statement_line, start, end, text)
            )
    return sorted(found, key=lambda place: (place.start, place.end, place.kind, place.text))


def _nodes(node: ast.AST, statement_line: int) -> Iterator[tuple[ast.AST, int]]:
    """Yields `node` and the nodes below it that run, each with the line of its statement."""
    # The nodes of an f-string have wrong positions before Python 3.12.
    if isinstance(node, ast.JoinedStr) or _is_for_types(node):
        return
    if isinstance(node, ast.stmt):
        statement_line = node.lineno
    yield node, statement_line
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _nodes(child, statement_line)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str, str]]:
    """Yields the node to replace, the kind of the change, and the new text."""
    match node:
        case ast.Compare(ops=[*ops]):
            for number, op in enumerate(ops):
                if type(op) in _COMPARISONS:
                    changed = copy.deepcopy(node)
                    changed.ops[number] = _COMPARISONS[type(op)]()
                    yield node, "comparison", f"({ast.unparse(changed)})"
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
            changed_sum = ast.BinOp(node.left, _ARITHMETIC[type(op)](), node.right)
            yield node, "arithmetic", f"({ast.unparse(changed_sum)})"
        case ast.BoolOp(op=op, values=values):
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, "and/or", f"({ast.unparse(ast.BoolOp(other, values))})"
        case ast.Constant(value=int(number)) if abs(number) <= _SMALL and number is not True:
            if number is not False:
                yield node, "number", str(number + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, "not", f"({ast.unparse(operand)})"
        case ast.Return(value=ast.expr() as value):
            if _is_truth(value):
                yield node, "return", f"return not ({ast.unparse(value)})"
            elif not (isinstance(value, ast.Constant) and value.value is None):
                yield node, "return", "return None"
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            yield test, "condition", f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=tests):
            for test in tests:
                yield test, "condition", f"(not ({ast.unparse(test)}))"


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in (node.left, node.right)
    )


def _is_truth(value: ast.expr) -> bool:
    return (
        isinstance(value, ast.Compare | ast.BoolOp)
        or (isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.Not))
        or (isinstance(value, ast.Constant) and isinstance(value.value, bool))
    )
