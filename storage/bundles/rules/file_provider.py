"""A directory of bundles that is watched: whose they may be, and how each of its files stands.

It keeps true: a file that is wrong changes nothing of what was applied of it last; one that has
vanished is believed only when it is still gone at the next look, and a directory that holds nothing
any more is not believed at all, as a mount that is away looks the same.
"""

import re
from enum import StrEnum
from typing import Final

FILES_MOST: Final = 100
_SLUG: Final = r"[a-z][a-z0-9-]{0,62}"
_SCOPE: Final = re.compile(rf"({_SLUG})/({_SLUG}|\*)")
EMPTY_NOW: Final = "holds no bundle any more, so that what was applied stays"


class FileStatus(StrEnum):
    """`pending` waits for the next look, `degraded` is wrong while what it said before stands,
    `rejected` is wrong and never was applied, `error` is our trouble."""

    PENDING = "pending"
    APPLIED = "applied"
    REJECTED = "rejected"
    ERROR = "error"
    DEGRADED = "degraded"


def may_name(scope: str, organization: str, project: str) -> bool:
    """Whether a provider of the scope may hold a bundle of that project, by slugs."""
    if not scope:
        return True
    named = _SCOPE.fullmatch(scope)
    return named is not None and named[1] == organization and named[2] in ("*", project)


def scope_of(scope: str) -> tuple[str, str, str]:
    """instance, organization or project; and the slugs of the latter two, empty for none."""
    organization, _, project = scope.partition("/")
    if not organization:
        return "instance", "", ""
    return (
        ("organization", organization, "") if project == "*" else ("project", organization, project)
    )


def wrong(generation: int) -> FileStatus:
    """How a file stands whose newest content is refused, by how often it was applied."""
    return FileStatus.DEGRADED if generation else FileStatus.REJECTED
