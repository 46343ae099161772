"""Help of the console: the glossary, read from docs/glossary.md, which the wheel contains."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ...wire.route import Request, Response, Route
from ..form_routes import page_route
from ..render import page
from .page_layout import outer_frame_of

GLOSSARY: Final = Path(__file__).parents[3] / "docs" / "glossary.md"
_CODE: Final = re.compile(r"`([^`]*)`")


@dataclass(frozen=True, slots=True)
class GlossaryTerm:
    name: str
    # Texts of the meaning; those with an odd index are code.
    meaning: Sequence[str]


@dataclass(frozen=True, slots=True)
class GlossaryGroup:
    title: str
    terms: Sequence[GlossaryTerm]


@cache
def terms() -> Sequence[GlossaryGroup]:
    """Returns the glossary by section. The column that names the code is omitted."""
    found: list[tuple[str, list[GlossaryTerm]]] = []
    for line in GLOSSARY.read_text().splitlines():
        if line.startswith("## "):
            found.append((line[3:], []))
        elif line.startswith("| ") and found:
            name, meaning = (cell.strip() for cell in line.strip("| ").split(" | ")[:2])
            if name != "term" and not name.startswith("---"):
                found[-1][1].append(GlossaryTerm(name, _CODE.split(meaning)))
    return [GlossaryGroup(title, group) for title, group in found if group]


async def render_help(ask: Request) -> Response:
    return page("ui/shell/help_screen.html", frame=await outer_frame_of(ask), groups=terms())


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path="/help",
        action=Permission(Need.ANYONE),
        handler=render_help,
        summary="Glossary of the console.",
    ),
)
