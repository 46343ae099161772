"""Whether anything in the database is sealed: then a key that is missing must not be made anew."""

from ..pools import Tx

# Every column that holds sealed values; a new one is added here.
_SEALED_COLUMNS = (("monitors", "config_sealed"), ("monitors", "push_token_sealed"))

_ANY = "select " + " or ".join(
    f"exists (select from {table} where {column} is not null)" for table, column in _SEALED_COLUMNS
)


async def holds_ciphertext(tx: Tx) -> bool:
    found: bool = await tx.value(_ANY)
    return found
