"""Check tests that a request inserts and polls."""

from uuid import UUID

from ...engine.pools import Tx
from ..rows import NewCheckTest
from ..tables import check_tests


async def delete_check_test(tx: Tx, uid: UUID) -> None:
    await check_tests.delete_check_test(tx, uid)


async def insert_check_test(tx: Tx, test: NewCheckTest) -> None:
    await check_tests.insert_check_test(tx, test)


async def pop_answer(tx: Tx, uid: UUID) -> str | None:
    """Returns the answer and deletes the test, None without an answer."""
    return await check_tests.pop_answer(tx, uid)
