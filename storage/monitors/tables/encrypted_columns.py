"""Columns with encrypted values, and their re-encryption.

A new encrypted column is added to `SEALED_COLUMNS`. Its table has a `uid`, which binds a value to
its row.
"""

from typing import Final, NamedTuple
from uuid import UUID

from ...engine.pools import Tx


class Column(NamedTuple):
    table: str
    name: str


SEALED_COLUMNS: Final = (
    Column("monitors", "config_ciphertext"),
    Column("monitors", "push_token_ciphertext"),
    Column("project_secrets", "value_ciphertext"),
    Column("notification_channels", "config_ciphertext"),
    Column("contact_methods", "config_ciphertext"),
    Column("webhooks", "secret_ciphertext"),
    Column("check_tests", "document_ciphertext"),
    Column("bundle_applications", "document_ciphertext"),
    Column("status_pages", "token_ciphertext"),
    Column("subscribers", "token_ciphertext"),
    Column("users", "totp_ciphertext"),
    Column("settings", "secret_ciphertext"),
    Column("push_bodies", "body_ciphertext"),
    Column("push_keys", "token_ciphertext"),
)

_ANY = "select " + " or ".join(
    f"exists (select from {table} where {name} is not null)" for table, name in SEALED_COLUMNS
)
_COUNT = "select " + " + ".join(
    f"(select count(*) from {table} where {name} is not null)" for table, name in SEALED_COLUMNS
)
# Locked, so that no concurrent write between the read and the update is lost.
_LOCK = {
    column: f"""
select uid, {column.name} from {column.table}
where {column.name} is not null and uid > %(after)s
order by uid limit %(most)s for no key update
"""
    for column in SEALED_COLUMNS
}
# Values that show whether a key is the right one.
SAMPLES_OF_COLUMN: Final = 3
_SAMPLES = {
    column: f"""
select uid, {column.name} from {column.table} where {column.name} is not null
limit {SAMPLES_OF_COLUMN}
"""
    for column in SEALED_COLUMNS
}
_UPDATE = {
    column: f"""
update {column.table} t set {column.name} = n.value
from unnest(%(uids)s::uuid[], %(values)s::bytea[]) as n(uid, value)
where t.uid = n.uid
"""
    for column in SEALED_COLUMNS
}


async def holds_ciphertext(tx: Tx) -> bool:
    """Returns whether encrypted values exist.

    If so, a missing key must not be replaced by a new one.
    """
    found: bool = await tx.value(_ANY)
    return found


async def count_sealed(tx: Tx) -> int:
    count: int = await tx.value(_COUNT)
    return count


async def lock_sealed(tx: Tx, column: Column, after: UUID, most: int) -> list[tuple[UUID, bytes]]:
    """Locks and returns the next rows with an encrypted value, by id."""
    return [
        (uid, bytes(value)) for uid, value in await tx.rows(_LOCK[column], after=after, most=most)
    ]


async def sample_sealed(tx: Tx) -> list[tuple[Column, UUID, bytes]]:
    """Returns a few encrypted values of each column, without a lock."""
    return [
        (column, uid, bytes(value))
        for column in SEALED_COLUMNS
        for uid, value in await tx.rows(_SAMPLES[column])
    ]


async def update_sealed(tx: Tx, column: Column, sealed: dict[UUID, bytes]) -> None:
    """Writes re-encrypted values of locked rows. Other columns stay unchanged."""
    count = await tx.execute(_UPDATE[column], uids=list(sealed), values=list(sealed.values()))
    assert count == len(sealed), "the rows are locked and there"
