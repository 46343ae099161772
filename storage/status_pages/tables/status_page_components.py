"""Components of status pages. Writers lock the page.

If the monitor or service of a component is deleted, the database clears the binding and keeps the
component.
"""

from uuid import UUID

import msgspec

from ...engine.pools import Tx
from ..rows import ComponentBinding, ComponentRow

_INSERT = """
insert into status_components (org, uid, page, name, description, group_name, position, source,
  monitor, service, manual_status, show_latency, created_at, updated_at)
values (%(org)s, %(uid)s, %(page)s, %(name)s, %(description)s, %(group)s, %(position)s, %(source)s,
  %(monitor)s, %(service)s, %(manual_status)s, %(show_latency)s, at(%(now)s), at(%(now)s))
"""
_UPDATE = """
update status_components set name = %(name)s, description = %(description)s,
  group_name = %(group)s, position = %(position)s, manual_status = %(manual_status)s,
  show_latency = %(show_latency)s, revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_BIND = """
update status_components set source = %(source)s, monitor = %(monitor)s, service = %(service)s,
  manual_status = %(manual_status)s, show_latency = show_latency and %(keeps_latency)s,
  revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from status_components where org = %(org)s and id = %(id)s"


async def insert_component(
    tx: Tx,
    org: int,
    page: int,
    uid: UUID,
    bound: ComponentBinding,
    *,
    name: str,
    description: str,
    group: str,
    position: int,
    show_latency: bool,
) -> None:
    """Inserts a component. The page and its source are locked."""
    await tx.execute(
        _INSERT,
        org=org,
        page=page,
        uid=uid,
        name=name,
        description=description,
        group=group,
        position=position,
        show_latency=show_latency,
        now=tx.now,
        **msgspec.structs.asdict(bound),
    )


async def update_component(
    tx: Tx,
    row: ComponentRow,
    *,
    name: str,
    description: str,
    group: str,
    position: int,
    manual_status: str | None,
    show_latency: bool,
) -> None:
    """Updates a component except its source. The page is locked."""
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        description=description,
        group=group,
        position=position,
        manual_status=manual_status,
        show_latency=show_latency,
        now=tx.now,
    )
    assert count == 1, "the locked page keeps its components"


async def bind_component(
    tx: Tx, row: ComponentRow, bound: ComponentBinding, *, keeps_latency: bool
) -> None:
    """Binds a component to another source. The page and the source are locked.

    Unless `keeps_latency`, the component no longer shows latency.
    """
    values = msgspec.structs.asdict(bound) | {"keeps_latency": keeps_latency}
    count = await tx.execute(_BIND, org=row.org, id=row.id, now=tx.now, **values)
    assert count == 1, "the locked page keeps its components"


async def delete_component(tx: Tx, row: ComponentRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)
