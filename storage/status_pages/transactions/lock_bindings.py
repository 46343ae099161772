"""Bindings of components: looked up within the scope of the page, and locked.

The scope is the organization, for a page of a project the project. A source outside of it is
refused in the same way as one that does not exist.
"""

from typing import Final
from uuid import UUID

from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.queries import monitors as monitors_queries
from ...monitors.rows import MonitorRow
from ...monitors.tables import monitors
from ...services.rows import ServiceRow
from ...services.tables import services
from ..rows import ComponentBinding, PageRow
from ..rules.status_page import ComponentSource
from ..rules.status_page_edit import BindingTarget

BINDING_NOT_FOUND: Final = "binding not found"


async def find_bound(tx: Tx, page: PageRow, target: BindingTarget) -> ComponentBinding:
    """Returns the binding without a lock.

    Raises:
        Refused binding not found.
    """
    if target.monitor is not None:
        monitor = await _monitor_of(tx, page, target.monitor)
        return ComponentBinding(source=ComponentSource.MONITOR, monitor=monitor.id)
    if target.service is not None:
        service = await _service_of(tx, page, target.service)
        return ComponentBinding(source=ComponentSource.SERVICE, service=service.id)
    assert target.manual_status is not None, "one source is named"
    return ComponentBinding(source=ComponentSource.MANUAL, manual_status=target.manual_status)


async def lock_bindings(tx: Tx, page: PageRow, target: BindingTarget) -> ComponentBinding:
    """Returns the binding and locks its source against deletion.

    Raises:
        Refused binding not found.
    """
    bound = await find_bound(tx, page, target)
    if (
        target.service is not None
        and await services.lock_shared_service(tx, target.service) is None
    ):
        raise Refused(BINDING_NOT_FOUND)
    if target.monitor is not None:
        row = await _monitor_of(tx, page, target.monitor)
        if not await monitors.lock_shared_monitors(tx, row.org, row.project, [row.uid]):
            raise Refused(BINDING_NOT_FOUND)
    return bound


async def _monitor_of(tx: Tx, page: PageRow, uid: UUID) -> MonitorRow:
    row = await monitors_queries.select_monitor(tx, uid)
    if row is None or not _is_in_reach(page, row.org, row.project):
        raise Refused(BINDING_NOT_FOUND)
    return row


async def _service_of(tx: Tx, page: PageRow, uid: UUID) -> ServiceRow:
    row = await services.select_service(tx, uid)
    if row is None or not _is_in_reach(page, row.org, row.project):
        raise Refused(BINDING_NOT_FOUND)
    return row


def _is_in_reach(page: PageRow, org: int, project: int) -> bool:
    return org == page.org and page.project in (None, project)
