"""What people have set for the whole installation, a JSON document by name."""

from ..pools import Tx

_SELECT = "select value::text from settings where name = %(name)s"
_PUT = """
insert into settings (name, value, updated_at)
values (%(name)s, %(value)s::jsonb, at(%(now)s))
on conflict (name) do update set value = excluded.value, updated_at = excluded.updated_at
"""


async def select_setting(tx: Tx, name: str) -> str | None:
    """As JSON text; None where it was never set."""
    value: str | None = await tx.value(_SELECT, name=name)
    return value


async def put_setting(tx: Tx, name: str, value: str) -> None:
    await tx.execute(_PUT, name=name, value=value, now=tx.now)
