"""The shell commands of a document."""

import re
from pathlib import Path
from typing import Final

DOCS: Final = Path(__file__).parents[3] / "docs"
_BLOCK: Final = re.compile(r"^ *```sh\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, heading: str) -> list[str]:
    """Returns the blocks of shell commands of one section, up to the next heading of its level."""
    text = (DOCS / page).read_text()
    level = heading.partition(" ")[0]
    _, found, section = text.partition(f"\n{heading}\n")
    assert found, f"{page} has no section {heading}"
    section = re.split(rf"^{level} ", section, maxsplit=1, flags=re.MULTILINE)[0]
    return _BLOCK.findall(section)


def all_blocks(page: str) -> list[str]:
    """Returns the blocks of shell commands of a page, in their order."""
    return _BLOCK.findall((DOCS / page).read_text())
