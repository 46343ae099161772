"""Refusal of edits by people of an object that a bundle manages."""

from typing import Final
from uuid import UUID

from ...core.refusal import Refused
from ...engine.pools import Tx
from ..queries.object_marks import select_mark
from ..rules.access import Principal
from .authorize import is_managed

SETTINGS: Final = "project_settings"
SERIES: Final = "maintenance_series"
PAGE: Final = "status_page"
WEBHOOK: Final = "webhook"


async def expect_unmanaged_object(
    tx: Tx, principal: Principal, org: int, project: int, kind: str, uid: UUID
) -> None:
    """Checks that no bundle of another provider manages the object, which is locked.

    Raises:
        Refused managed_by_file.
    """
    mark = await select_mark(tx, org, project, kind, uid)
    if mark is not None and is_managed(principal, mark.managed_by, mark.orphaned_at):
        raise Refused("managed_by_file")
