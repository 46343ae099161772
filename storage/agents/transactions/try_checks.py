"""Tests of checks before they are saved, for agents: lease and answer.

A test is leased to one agent or worker of its region. Only an agent that declares CHECK_TEST and
the capability of the monitor type, and understands every carrier generation, receives one: an
encrypted test does not show which generation it needs before it is leased.
"""

from collections.abc import Collection
from typing import Final
from uuid import UUID

from ....probes.jobs.agent_protocol import CAPABILITY, CHECK_TEST, Generation, is_capable
from ...engine.pools import Tx
from ...monitors.rows import CheckTest
from ...monitors.tables import check_tests
from ..rows import AgentRow

# Tests per claim.
TESTS_MOST: Final = 5


async def lease_tests(
    tx: Tx, agent: AgentRow, kinds: Collection[str], most: int
) -> list[CheckTest]:
    """Leases waiting tests of the agent's region, none to an agent that cannot run them."""
    if CHECK_TEST not in kinds or agent.carrier < max(Generation):
        return []
    return await check_tests.lease_check_tests(
        tx,
        agent.holder,
        [agent.region],
        min(most, TESTS_MOST),
        refused=[kind for kind in CAPABILITY if not is_capable(kind, kinds)],
        kinds=kinds,
    )


async def answer_test(tx: Tx, agent: AgentRow, uid: UUID, answer: str) -> bool:
    """Stores the answer. Returns False if the test is not leased to the agent or is over."""
    return await check_tests.answer_leased(tx, uid, agent.holder, agent.region, answer)
