"""The newest bodies of pushes, encrypted."""

from ...core.instant import Instant
from ...core.key import MonitorKey
from ...engine.pools import Tx
from ..rows import PushBodyRow
from ..rules.push_body import BODIES_KEPT

_INSERT = """
insert into push_bodies (org, monitor, uid, at, kind, up, run, is_cut, body_ciphertext)
select m.org, m.id, %(uid)s, at(%(at)s), %(kind)s, %(up)s, %(run)s, %(cut)s, %(sealed)s
-- The cached token may outlive its monitor briefly.
from monitors m where m.org = %(org)s and m.id = %(monitor)s
"""
_TRIM = """
delete from push_bodies b where b.org = %(org)s and b.monitor = %(monitor)s
  and (b.at, b.uid) < (select at, uid from push_bodies
    where org = %(org)s and monitor = %(monitor)s
    order by at desc, uid desc offset %(kept)s limit 1)
"""
# A monitor that no longer keeps bodies loses them.
_DROP = """
delete from push_bodies b using monitors m
where m.org = b.org and m.id = b.monitor
  and (b.at < at(%(before)s) or m.config->'keep_bodies' is distinct from 'true'::jsonb)
"""


async def insert_push_body(tx: Tx, key: MonitorKey, row: PushBodyRow) -> None:
    """Stores a body, and deletes all but the newest BODIES_KEPT."""
    place = {"org": key[0], "monitor": key[1]}
    await tx.execute(
        _INSERT,
        **place,
        uid=row.uid,
        at=row.at,
        kind=row.kind,
        up=row.up,
        run=row.run,
        cut=row.is_cut,
        sealed=row.body_ciphertext,
    )
    await tx.execute(_TRIM, **place, kept=BODIES_KEPT - 1)


async def drop_push_bodies(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
