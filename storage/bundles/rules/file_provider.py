"""Watched directories of bundles: their scope and the status of each file.

Invariant: a faulty file does not change what was applied before. A missing file counts as removed
only if the next scan confirms it. A directory without bundles is an error and removes no objects,
because a missing mount is indistinguishable from it.
"""

import re
from enum import StrEnum
from typing import Final

FILES_MOST: Final = 100
_SLUG: Final = r"[a-z][a-z0-9-]{0,62}"
_SCOPE: Final = re.compile(rf"({_SLUG})/({_SLUG}|\*)")
EMPTY_NOW: Final = "no longer contains a bundle, so the applied objects stay"


class FileStatus(StrEnum):
    """Status of a file.

    `pending` waits for the next scan. `degraded` is faulty, and its previous content stays applied.
    `rejected` is faulty and was never applied. `error` is a failure of the server.
    """

    PENDING = "pending"
    APPLIED = "applied"
    REJECTED = "rejected"
    ERROR = "error"
    DEGRADED = "degraded"


def may_name(scope: str, organization: str, project: str) -> bool:
    """Returns whether a provider of this scope can have a bundle of the project, by slugs."""
    if not scope:
        return True
    named = _SCOPE.fullmatch(scope)
    return named is not None and named[1] == organization and named[2] in ("*", project)


def scope_of(scope: str) -> tuple[str, str, str]:
    """Returns instance, organization or project, and the slugs of the latter two or empty."""
    organization, _, project = scope.partition("/")
    if not organization:
        return "instance", "", ""
    return (
        ("organization", organization, "") if project == "*" else ("project", organization, project)
    )


def wrong(generation: int) -> FileStatus:
    """Returns the status of a file whose newest content is refused, by its generation."""
    return FileStatus.DEGRADED if generation else FileStatus.REJECTED
