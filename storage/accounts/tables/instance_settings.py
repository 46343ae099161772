"""Settings of the installation: a JSON document per name, with an optional secret."""

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
where settings.value <> excluded.value
"""
_PUT_SECRET = "update settings set secret_ciphertext = %(sealed)s where name = %(name)s"


async def select_setting(tx: Tx, name: str) -> str | None:
    """Returns the setting as JSON text, None if it was never stored."""
    value: str | None = await tx.value(_SELECT, name=name)
    return value


async def select_whole_setting(tx: Tx, name: str) -> SettingRow | None:
    return await tx.one(SettingRow, _SELECT_WHOLE, name=name)


async def put_setting(tx: Tx, name: str, value: str) -> bool:
    """Writes a setting and locks it. Returns False if the stored value is equal.

    Later writes keep the uid of a setting.
    """
    return await tx.execute(_PUT, name=name, value=value, now=tx.now) == 1


async def put_secret(tx: Tx, name: str, sealed: bytes | None) -> None:
    """Writes the secret of an existing setting."""
    await tx.execute(_PUT_SECRET, name=name, sealed=sealed)
