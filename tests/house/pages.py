"""The documents of the project: their fenced blocks and inline code."""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from tests.house.sources import ROOT

PAGES: Final = tuple(
    sorted(
        [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "tests" / "README.md"],
    )
)
_FENCE: Final = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
_INLINE: Final = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page; `language` is empty if the fence does not name one."""

    page: str
    language: str
    text: str


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@cache
def blocks() -> tuple[Block, ...]:
    return tuple(
        Block(name_of(page), language, text)
        for page in PAGES
        for _, language, text in _FENCE.findall(page.read_text())
    )


@cache
def inline_codes() -> tuple[tuple[str, str], ...]:
    """Returns pairs of page and inline code, outside fenced blocks."""
    return tuple(
        (name_of(page), code)
        for page in PAGES
        for code in _INLINE.findall(_FENCE.sub("", page.read_text()))
    )
