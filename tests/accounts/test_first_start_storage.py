"""The first start on an empty database creates one administrator and knows the password."""

from typing import cast

import pytest

from leadline.daemon.config.config_schema import Settings
from leadline.daemon.config.roles import ProcessRole
from leadline.daemon.process.first_start import FirstStart, InitialAdmin
from leadline.http.auth.passwords import Passwords
from leadline.storage.core.refusal import Unavailable
from leadline.storage.engine.pools import Pool
from tests.support.worlds.local_failures import FlakyPool

EMAIL = "admin@localhost"


@pytest.fixture
def template(migrated: str) -> str:
    """A database without rows."""
    return migrated


async def stored(pool: Pool) -> list[tuple[str, str]]:
    async with pool.transaction("look", read_only=True) as tx:
        return [(row[0], row[1]) for row in await tx.rows("select email, password from users")]


@pytest.mark.parametrize("failure", ["fail_before", "fail_after"])
async def test_a_commit_of_unknown_outcome_loses_no_password(
    pool: Pool, passwords: Passwords, failure: str
) -> None:
    flaky = FlakyPool(pool)
    getattr(flaky, failure).add("bootstrap_installation")
    start = FirstStart(Settings(), ProcessRole.ALL, passwords)
    for _ in range(2):
        with pytest.raises(Unavailable):
            await start.found(cast("Pool", flaky))
    admin = await start.found(pool)
    assert admin is not None
    assert admin.password is not None
    ((email, hashed),) = await stored(pool)
    assert (admin.email, email) == (EMAIL, EMAIL)
    assert await passwords.matches(admin.password, hashed)


async def test_a_process_does_not_take_anothers_installation_for_its_own(
    pool: Pool, passwords: Passwords
) -> None:
    flaky = FlakyPool(pool)
    flaky.fail_before.add("bootstrap_installation")
    late = FirstStart(Settings(), ProcessRole.ALL, passwords)
    with pytest.raises(Unavailable):
        await late.found(cast("Pool", flaky))
    first = await FirstStart(Settings(), ProcessRole.ALL, passwords).found(pool)
    assert isinstance(first, InitialAdmin)
    assert await late.found(pool) is None
    assert await FirstStart(Settings(), ProcessRole.ALL, passwords).found(pool) is None
    assert len(await stored(pool)) == 1
