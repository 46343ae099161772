"""Check tests before saving.

Each waits for one worker or agent of its region, and is deleted when its answer is read or it has
expired.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

import msgspec

from ...core.instant import Instant
from ...engine.keyring import CipherContext
from ...engine.pools import Tx
from ..rows import CheckTest, NewCheckTest

_INSERT = """
insert into check_tests
  (uid, region, type, needs, document, document_ciphertext, created_at, claim_until)
values
  (%(uid)s, %(region)s, %(type)s, %(needs)s::text[], %(document)s::jsonb,
   %(sealed)s, at(%(now)s), at(%(until)s))
"""
_LEASE = """
update check_tests set holder = %(process)s where uid = any(array(
  select uid from check_tests
  where region = any(%(regions)s::text[]) and holder is null and claim_until > at(%(now)s)
    and (type is null or type <> all(%(refused)s::text[]))
    and (%(kinds)s::text[] is null or needs <@ %(kinds)s::text[])
  order by created_at limit %(most)s for update skip locked))
returning uid, document::text, document_ciphertext
"""
_ANSWER = "update check_tests set answer = %(answer)s::jsonb where uid = %(uid)s"
_ANSWER_LEASED = """
update check_tests set answer = %(answer)s::jsonb
where uid = %(uid)s and holder = %(holder)s and region = %(region)s and answer is null
"""
_TAKE_ANSWER = (
    "delete from check_tests where uid = %(uid)s and answer is not null returning answer::text"
)
_DELETE = "delete from check_tests where uid = %(uid)s"
_DROP = "delete from check_tests where claim_until < at(%(before)s)"


def place_of(trial: UUID) -> CipherContext:
    return CipherContext("check_tests", "document_ciphertext", trial)


async def insert_check_test(tx: Tx, test: NewCheckTest) -> None:
    await tx.execute(_INSERT, **msgspec.structs.asdict(test), now=tx.now)


async def lease_check_tests(
    tx: Tx,
    process: UUID,
    regions: Sequence[str],
    most: int,
    refused: Sequence[str] = (),
    kinds: Collection[str] | None = None,
) -> list[CheckTest]:
    """Leases tests, without those of `refused` monitor types.

    `kinds` are the capabilities of an agent; None for a process, which has all.
    """
    return await tx.structs(
        CheckTest,
        _LEASE,
        process=process,
        regions=list(regions),
        refused=list(refused),
        kinds=None if kinds is None else sorted(kinds),
        most=most,
        now=tx.now,
    )


async def answer_check_test(tx: Tx, uid: UUID, answer: str) -> None:
    """Stores the answer. Has no effect if the test was deleted."""
    await tx.execute(_ANSWER, uid=uid, answer=answer)


async def answer_leased(tx: Tx, uid: UUID, holder: UUID, region: str, answer: str) -> bool:
    """Stores the first answer of the holder. Returns False if the test is not leased to it, or has
    an answer.
    """
    return (
        await tx.execute(_ANSWER_LEASED, uid=uid, holder=holder, region=region, answer=answer) == 1
    )


async def pop_answer(tx: Tx, uid: UUID) -> str | None:
    """Returns the answer and deletes the test, None without an answer."""
    found: str | None = await tx.value(_TAKE_ANSWER, uid=uid)
    return found


async def delete_check_test(tx: Tx, uid: UUID) -> None:
    await tx.execute(_DELETE, uid=uid)


async def drop_check_tests(tx: Tx, before: Instant) -> int:
    return await tx.execute(_DROP, before=before)
