"""Components of status pages. Whoever writes them holds their page.

What a component is bound to may go: the database takes the binding away, and the component stays.
"""

from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.pools import Tx

_COLUMNS = """
c.org, c.id, c.uid, o.uid, c.page, g.uid, c.name, c.description, c.group_name, c.position, c.source,
c.monitor, m.uid, c.service, s.uid, c.manual_status, p.id, p.uid, c.revision, c.created_at,
c.updated_at
"""
_FROM = """
from status_components c join organizations o on o.id = c.org
  join status_pages g on g.org = c.org and g.id = c.page
  left join monitors m on m.org = c.org and m.id = c.monitor
  left join services s on s.org = c.org and s.id = c.service
  left join projects p on p.org = c.org and p.id = coalesce(m.project, s.project)
"""
_BY_UID = f"select {_COLUMNS} {_FROM} where c.uid = %(uid)s"
_OF_PAGE = f"""
select {_COLUMNS} {_FROM} where c.org = %(org)s and c.page = %(page)s order by c.position, c.id
"""
_INSERT = """
insert into status_components (org, uid, page, name, description, group_name, position, source,
  monitor, service, manual_status, created_at, updated_at)
values (%(org)s, %(uid)s, %(page)s, %(name)s, %(description)s, %(group)s, %(position)s, %(source)s,
  %(monitor)s, %(service)s, %(manual_status)s, at(%(now)s), at(%(now)s))
"""
_UPDATE = """
update status_components set name = %(name)s, description = %(description)s,
  group_name = %(group)s, position = %(position)s, manual_status = %(manual_status)s,
  revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_BIND = """
update status_components set source = %(source)s, monitor = %(monitor)s, service = %(service)s,
  manual_status = %(manual_status)s, revision = revision + 1, updated_at = at(%(now)s)
where org = %(org)s and id = %(id)s
"""
_DELETE = "delete from status_components where org = %(org)s and id = %(id)s"


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """What a component shows: one of the three, as its source says."""

    source: str
    monitor: int | None = None
    service: int | None = None
    manual_status: str | None = None


class ComponentRow(msgspec.Struct, frozen=True):
    """`home` is the project of what it is bound to."""

    org: int
    id: int
    uid: UUID
    org_uid: UUID
    page: int
    page_uid: UUID
    name: str
    description: str
    group: str
    position: int
    source: str
    monitor: int | None
    monitor_uid: UUID | None
    service: int | None
    service_uid: UUID | None
    manual_status: str | None
    home: int | None
    home_uid: UUID | None
    revision: int
    created_at: Instant
    updated_at: Instant

    @property
    def bound(self) -> Bound:
        return Bound(
            source=self.source,
            monitor=self.monitor,
            service=self.service,
            manual_status=self.manual_status,
        )


async def select_component(tx: Tx, uid: UUID) -> ComponentRow | None:
    return await tx.one(ComponentRow, _BY_UID, uid=uid)


async def select_components_of(tx: Tx, org: int, page: int) -> list[ComponentRow]:
    """In the order in which the page shows them."""
    return await tx.structs(ComponentRow, _OF_PAGE, org=org, page=page)


async def insert_component(
    tx: Tx,
    org: int,
    page: int,
    uid: UUID,
    bound: Bound,
    *,
    name: str,
    description: str,
    group: str,
    position: int,
) -> None:
    """The page is held, and so is what it is bound to."""
    await tx.execute(
        _INSERT,
        org=org,
        page=page,
        uid=uid,
        name=name,
        description=description,
        group=group,
        position=position,
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
) -> None:
    """The page is held, and the source stays what it is."""
    count = await tx.execute(
        _UPDATE,
        org=row.org,
        id=row.id,
        name=name,
        description=description,
        group=group,
        position=position,
        manual_status=manual_status,
        now=tx.now,
    )
    assert count == 1, "the page is held, and so its components stay"


async def bind_component(tx: Tx, row: ComponentRow, bound: Bound) -> None:
    """The page is held, and so is what it is bound to from now on."""
    values = msgspec.structs.asdict(bound)
    count = await tx.execute(_BIND, org=row.org, id=row.id, now=tx.now, **values)
    assert count == 1, "the page is held, and so its components stay"


async def delete_component(tx: Tx, row: ComponentRow) -> None:
    await tx.execute(_DELETE, org=row.org, id=row.id)
