"""Prose of the project by corpus, in blocks, and its hits of `avoided_phrases.txt`.

A block is a docstring, a run of adjacent comments, a string of the product, a text of a template,
or a paragraph, list item, table row or heading of a document.
"""

import ast
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Final

from tests.house.pages import PAGES
from tests.house.sources import ROOT

LAYERS: Final = ("daemon", "http", "probes", "storage")
_PHRASES: Final = Path(__file__).with_name("avoided_phrases.txt")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z'-]*")
# At least two words: keys, formats and paths are no prose.
_PROSE: Final = re.compile(r"[A-Za-z]{2,}[^A-Za-z]+(?:[a-z]+[^A-Za-z]+)*[A-Za-z]{2,}")
_SQL: Final = re.compile(
    r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|LOCK|SET|DROP|BEGIN|NOTIFY)\b", re.I
)
_NO_PROSE: Final = re.compile(r"`[^`]*`|https?://\S+|\{[^{}]*\}")
_PRAGMA: Final = re.compile(r"(?:type:|noqa|pragma|!/|fmt:|ruff:|mypy:)")
_FENCE: Final = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
_BEGINS_BLOCK: Final = re.compile(r"\s*(?:[-*+]\s|\d+\.\s|#|\|)")
_HIDDEN: Final = re.compile(r"\{#.*?#\}|<(script|style)\b.*?</\1>", re.DOTALL)
_EXPRESSION: Final = re.compile(r"\{%.*?%\}|\{\{.*?\}\}", re.DOTALL)
_INLINE_TAG: Final = r"(?:b|i|em|strong|code|a|time|span|abbr)\b"
_SHOWN_ATTRIBUTE: Final = re.compile(r'(?:title|placeholder|aria-label|alt)="([^"]+)"')


@dataclass(frozen=True)
class ProseBlock:
    corpus: str
    place: str
    text: str

    @property
    def words(self) -> int:
        return len(_WORD.findall(self.text))

    def hits(self) -> list[str]:
        """Returns the name of each avoided phrase, once for each occurrence."""
        return [name for name, phrase in phrases() for _ in phrase.finditer(self.text)]


@cache
def phrases() -> tuple[tuple[str, re.Pattern[str]], ...]:
    rows = [row.split("\t") for row in _PHRASES.read_text().splitlines() if row[:1] != "#"]
    return tuple((name, re.compile(text, re.IGNORECASE)) for name, text in rows)


@cache
def prose() -> tuple[ProseBlock, ...]:
    return tuple(
        ProseBlock(corpus, place, folded)
        for corpus, place, text in _texts()
        if (folded := " ".join(_NO_PROSE.sub(" X ", text).split()))
    )


def _texts() -> Iterator[tuple[str, str, str]]:
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            yield from _of_python(path, "code", "strings")
        for path in sorted((ROOT / layer).rglob("*.html")):
            for text in _of_template(path.read_text()):
                yield "templates", _name(path), text
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "node_modules" not in path.parts:
            yield from _of_python(path, "tests", "")
    for path in PAGES:
        for text in _of_page(path.read_text()):
            yield "docs", _name(path), text


def _of_python(path: Path, corpus: str, strings: str) -> Iterator[tuple[str, str, str]]:
    source = path.read_text()
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            text = ast.get_docstring(node, clean=False)
            if text is not None and isinstance(first, ast.Expr):
                docstrings.add(id(first.value))
                yield corpus, f"{_name(path)}:{first.lineno}", text
    for line, text in _comments(source):
        yield corpus, f"{_name(path)}:{line}", text
    if strings:
        for line, text in _strings(tree, docstrings):
            yield strings, f"{_name(path)}:{line}", text


def _comments(source: str) -> Iterator[tuple[int, str]]:
    run: list[str] = []
    start = last = 0
    for token in tokenize.generate_tokens(StringIO(source).readline):
        text = token.string.lstrip("#").strip()
        if token.type != tokenize.COMMENT or _PRAGMA.match(text):
            continue
        line = token.start[0]
        if run and line == last + 1 and token.line.lstrip().startswith("#"):
            run.append(text)
        else:
            if run:
                yield start, " ".join(run)
            run, start = [text], line
        last = line
    if run:
        yield start, " ".join(run)


def _strings(tree: ast.Module, docstrings: set[int]) -> Iterator[tuple[int, str]]:
    parts: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            text = "".join(
                str(part.value) if isinstance(part, ast.Constant) else " X " for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings or id(node) in parts:
                continue
            text = node.value
        else:
            continue
        if _PROSE.search(text) and not _SQL.match(text):
            yield node.lineno, text


def _of_template(text: str) -> Iterator[str]:
    text = _HIDDEN.sub(" ", text)
    yield from (value for value in _SHOWN_ATTRIBUTE.findall(text) if _PROSE.search(value))
    shown = _EXPRESSION.sub(lambda found: " X " if found[0][1] == "{" else " ", text)
    for piece in re.split(rf"<(?!/?{_INLINE_TAG})[^>]*>", shown):
        bare = re.sub(r"<[^>]+>", " ", piece)
        if _PROSE.search(bare):
            yield bare


def _of_page(text: str) -> Iterator[str]:
    run: list[str] = []
    for line in [*_FENCE.sub("", text).split("\n"), ""]:
        if run and (not line.strip() or _BEGINS_BLOCK.match(line)):
            yield " ".join(run)
            run = []
        if line.strip():
            run.append(line)


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
