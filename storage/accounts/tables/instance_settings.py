"""What people have set for the whole installation, a JSON document by name, and a secret beside."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import SettingRow

_SELECT = "select value::text from settings where name = %(name)s"
_SELECT_WHOLE = """
select uid, value::text, secret_ciphertext from settings where name = %(name)s
"""
_PUT = """
insert into settings (name, value, updated_at)
values (%(name)s, %(value)s::jsonb, at(%(now)s))
on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at
returning uid
"""
_PUT_SECRET = "update settings set secret_ciphertext = %(sealed)s where name = %(name)s"


async def select_setting(tx: Tx, name: str) -> str | None:
    """As JSON text; None where it was never set."""
    value: str | None = await tx.value(_SELECT, name=name)
    return value


async def select_whole_setting(tx: Tx, name: str) -> SettingRow | None:
    return await tx.one(SettingRow, _SELECT_WHOLE, name=name)


async def put_setting(tx: Tx, name: str, value: str) -> UUID:
    """The setting's uid, which stays as long as it does."""
    uid: UUID = await tx.value(_PUT, name=name, value=value, now=tx.now)
    return uid


async def put_secret(tx: Tx, name: str, sealed: bytes | None) -> None:
    """Beside a setting that is there."""
    await tx.execute(_PUT_SECRET, name=name, sealed=sealed)
