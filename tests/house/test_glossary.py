"""The glossary names each term once, with code that contains it."""

import re
from typing import Final

from tests.house.sources import ROOT

GLOSSARY: Final = ROOT / "docs" / "glossary.md"
_ROW: Final = re.compile(r"^\| ([^|]+) \| ([^|]+) \| `([^`]+)` \|$", re.MULTILINE)


def _rows() -> list[tuple[str, str, str]]:
    return _ROW.findall(GLOSSARY.read_text())


def _code_of(path: str) -> str:
    """The text of a file, or of all modules and migrations below a folder."""
    place = ROOT / path
    files = [place] if place.is_file() else sorted(place.rglob("*.py"))
    return "\n".join([str(file) + "\n" + file.read_text() for file in files])


def _stem(term: str) -> str:
    """The characters that all forms of a term share: "global silence" is also `global_silence`."""
    return re.sub(r"[\s-]", "", term.lower()).removesuffix("e").removesuffix("y")


def test_every_term_is_defined_once() -> None:
    terms = [term for term, _, _ in _rows()]
    assert len(terms) > 60
    assert sorted(terms) == sorted(set(terms))


def test_every_term_occurs_in_the_code_that_the_glossary_names() -> None:
    missing = []
    for term, _, path in _rows():
        if not (ROOT / path).exists():
            missing.append(f"{term}: {path} does not exist")
        elif _stem(term) not in re.sub(r"[\s_-]", "", _code_of(path).lower()):
            missing.append(f"{term}: {path} does not contain it")
    assert missing == []
