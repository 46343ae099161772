"""Second factors over time, compared with a model of the specification, and with concurrent
codes."""

import random
from dataclasses import dataclass, field

import pytest
import trio
from uuid_utils.compat import uuid7

from leadline.storage.accounts.rows import UserRow
from leadline.storage.accounts.rules.access import CredentialKind, Principal
from leadline.storage.accounts.rules.totp import (
    RECOVERY_CODES,
    WRONG_MOST,
    TotpOutcome,
    code_of,
    step_at,
)
from leadline.storage.accounts.tables import users
from leadline.storage.accounts.transactions import edit_totp as second_factor
from leadline.storage.core.instant import MINUTE, SECOND, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import Keyring
from tests.support.worlds.world import World

NEVER = "000-no-code"


@dataclass
class Person:
    world: World
    row: UserRow
    principal: Principal
    secret: bytes = b""
    recovery: list[str] = field(default_factory=list)

    def code(self, aside: int = 0) -> str:
        return code_of(self.secret, step_at(self.world.now) + aside)

    async def enrol(self) -> None:
        async with self.world.pool.transaction("enrol") as tx:
            _, self.secret = await second_factor.enrol(tx, self.principal, self.world.keyring)

    async def enable(self, code: str) -> list[str]:
        async with self.world.pool.transaction("enable") as tx:
            return await second_factor.enable(tx, self.principal, code, self.world.keyring)

    async def give(self, code: str | None, keyring: Keyring | None = None) -> TotpOutcome:
        async with self.world.pool.transaction("pass") as tx:
            ring = keyring or self.world.keyring
            return await second_factor.pass_second_factor(tx, self.row, code, ring)


async def person(world: World) -> Person:
    uid = uuid7()
    async with world.pool.transaction("person") as tx:
        key = await users.insert_user(tx, uid, "mara@example.com", "Mara", "hash", admin=False)
        assert key is not None
        row = await users.select_user_by_id(tx, key)
    assert row is not None
    return Person(world, row, Principal(CredentialKind.SESSION, user=uid, uid=uid))


async def enrolled(world: World) -> Person:
    made = await person(world)
    await made.enrol()
    made.recovery = await made.enable(made.code())
    assert len(set(made.recovery)) == RECOVERY_CODES
    # The next step, whose code was not taken by enabling.
    world.now = Instant(world.now + 30 * SECOND)
    return made


async def test_no_code_is_required_before_the_factor_is_enabled(world: World) -> None:
    made = await person(world)
    assert await made.give(None) is TotpOutcome.PASSED
    await made.enrol()
    assert await made.give(None) is TotpOutcome.PASSED
    with pytest.raises(Refused, match="code"):
        await made.enable(NEVER)
    first = made.secret
    await made.enrol()
    assert made.secret != first
    with pytest.raises(Refused, match="code"):
        await made.enable(code_of(first, step_at(world.now)))
    await made.enable(made.code())
    assert await made.give(None) is TotpOutcome.REQUIRED
    # The code that enabled the factor is used.
    assert await made.give(made.code()) is TotpOutcome.REFUSED
    with pytest.raises(Refused, match="totp_enabled"):
        await made.enrol()


async def test_a_disabled_factor_is_not_required_and_its_codes_are_deleted(world: World) -> None:
    made = await enrolled(world)
    async with world.pool.transaction("disable") as tx:
        await second_factor.disable(tx, made.principal, made.row)
    assert await made.give(None) is TotpOutcome.PASSED
    assert await world.rows("select 1 from recovery_codes") == []
    assert await world.rows("select totp_ciphertext from users") == [(None,)]
    actions = await world.rows("select action from audit_entries order by id")
    assert actions == [("user.totp_enable",), ("user.totp_disable",)]


async def test_a_password_change_prevents_the_disabling_with_the_old_password(world: World) -> None:
    made = await enrolled(world)
    async with world.pool.transaction("password") as tx:
        await users.set_password(tx, made.row.id, "another")
    with pytest.raises(Refused, match="revision_conflict"):
        async with world.pool.transaction("disable") as tx:
            await second_factor.disable(tx, made.principal, made.row)
    # A caller who knows the old password cannot sign in with a code.
    assert await made.give(made.code()) is TotpOutcome.REFUSED


async def test_the_machine_s_owner_removes_it(world: World) -> None:
    made = await enrolled(world)
    async with world.pool.transaction("remove") as tx:
        await second_factor.remove_factor(tx, world.editor, "Mara@example.com")
    assert await made.give(None) is TotpOutcome.PASSED
    with pytest.raises(Refused, match="no account has this e-mail address"):
        async with world.pool.transaction("remove") as tx:
            await second_factor.remove_factor(tx, world.editor, "nobody@example.com")


async def test_a_lost_key_is_reported_and_no_sign_in_succeeds(world: World) -> None:
    made = await enrolled(world)
    with pytest.raises(Refused, match="encryption_key_missing"):
        await made.give(made.code(), Keyring(b"x" * 32))
    assert await made.give(None, Keyring(b"x" * 32)) is TotpOutcome.REQUIRED


@pytest.mark.parametrize("recovers", [False, True])
async def test_one_of_many_concurrent_sign_ins_with_one_code_succeeds(
    world: World, recovers: bool
) -> None:
    made = await enrolled(world)
    code = made.recovery[0] if recovers else made.code()
    found: list[TotpOutcome] = []

    async def give() -> None:
        found.append(await made.give(code))

    async with trio.open_nursery() as nursery:
        for _ in range(6):
            nursery.start_soon(give)
    assert sorted(found) == [TotpOutcome.PASSED, *[TotpOutcome.REFUSED] * 5]


async def test_concurrent_wrong_codes_are_all_counted(world: World) -> None:
    made = await enrolled(world)
    async with trio.open_nursery() as nursery:
        for _ in range(WRONG_MOST):
            nursery.start_soon(made.give, NEVER)
    assert await made.give(made.code()) is TotpOutcome.REFUSED
    assert await made.give(made.recovery[0]) is TotpOutcome.REFUSED
    world.now = Instant(world.now + 15 * MINUTE)
    assert await made.give(made.code()) is TotpOutcome.PASSED


@pytest.mark.parametrize("seed", range(6))
async def test_the_accepted_codes_equal_those_of_the_model(world: World, seed: int) -> None:
    """A code works once and at most one step early or late. Ten wrong codes in 15 minutes lock the
    factor for 15 minutes. A recovery code works once, and not during a lock."""
    chance = random.Random(seed)
    made = await enrolled(world)
    taken = step_at(world.now) - 1
    unspent = set(made.recovery)
    wrong: list[int] = []
    closed_until = 0
    for _ in range(150):
        world.now = Instant(world.now + chance.choice([0, 1, 20, 30, 61, 200]) * SECOND)
        what = chance.choice(["right", "right", "aside", "recovery", "none", *["wrong"] * 5])
        here = step_at(world.now)
        aside = chance.choice([-2, -1, 0, 1, 2]) if what == "aside" else 0
        given = {
            "right": made.code(),
            "aside": made.code(aside),
            "recovery": chance.choice(made.recovery),
            "wrong": NEVER,
            "none": "",
        }[what]
        found = await made.give(given)
        if what == "none":
            assert found is TotpOutcome.REQUIRED
            continue
        if world.now < closed_until:
            assert found is TotpOutcome.REFUSED
            continue
        if what == "recovery":
            good = given in unspent
            unspent.discard(given)
        else:
            steps = [s for s in (here - 1, here, here + 1) if code_of(made.secret, s) == given]
            good = any(step > taken for step in steps)
            taken = max([*steps, taken]) if good else taken
        assert found is (TotpOutcome.PASSED if good else TotpOutcome.REFUSED), (what, aside)
        if good:
            wrong = []
            continue
        wrong = [at for at in wrong if at > world.now - 15 * MINUTE] + [world.now]
        if len(wrong) == 10:
            closed_until, wrong = world.now + 15 * MINUTE, []
