"""Tests of checks before they are saved, as jobs of agents and their results."""

import os
from typing import Final
from uuid import UUID

from msgspec import UNSET, json

from ....probes.check.result import (
    MESSAGE_LONGEST,
    FailedCondition,
    Phases,
    Result,
    UnknownReason,
    unobtained,
)
from ....probes.jobs.agent_protocol import (
    AgentTestResponse,
    AgentTestResult,
    Generation,
    Job,
    generation_of,
    spelt,
)
from ....probes.jobs.envelope import NONCE_BYTES, SALT_BYTES, Contents, seal
from ....storage.agents.rows import AgentRow
from ....storage.agents.transactions.try_checks import answer_test
from ....storage.core.instant import SECOND, Instant, from_datetime, to_text
from ....storage.engine.keyring import CannotOpen
from ....storage.monitors.rows import CheckTest
from ....storage.monitors.transactions.check_test_document import CheckTestDocument, open_document
from ....storage.monitors.transactions.config_secrets import join, split
from ...wire.app_context import AppContext
from ...wire.schema import given

# Added to the timeout of the check. After that time, no caller waits for the result.
GRACE_SECONDS: Final = 15


async def test_jobs(
    context: AppContext, agent: AgentRow, leased: list[CheckTest], token: str
) -> list[Job]:
    """Returns the leased tests as jobs, with their secrets encrypted for the token.

    A test that cannot be decrypted here is answered with that reason.
    """
    jobs = []
    for test in leased:
        try:
            document = open_document(test, context.keyring)
        except CannotOpen:
            result = unobtained(context.clock(), "", UnknownReason.DECRYPT_FAILED)
            await _store(context, agent, test.uid, result)
        else:
            jobs.append(_job(test.uid, document, context.clock(), token))
    return jobs


def _job(uid: UUID, document: CheckTestDocument, now: Instant, token: str) -> Job:
    plain, secret = split(document.type, document.config)
    carrier = generation_of(document.type, has_secrets=bool(secret or document.values))
    job = Job(
        job_id=uid,
        monitor_id=uid,
        due_at=to_text(now),
        type=document.type,
        target=document.target,
        config=spelt(plain),
        method=document.method or "GET",
        conditions=document.conditions,
        show_values=document.show_values or UNSET,
        retries=document.retries,
        revision=0,
        timeout_seconds=document.timeout_seconds,
        interval_seconds=document.interval_seconds,
        anchor=to_text(now),
        lease_expires_at=to_text(
            Instant(now + (document.timeout_seconds + GRACE_SECONDS) * SECOND)
        ),
        carrier=int(carrier),
    )
    if carrier is Generation.PLAIN:
        return job
    whole = join(plain, secret)
    contents = Contents(config=spelt({key: whole[key] for key in secret}), secrets=document.values)
    return seal(job, contents, token, os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES))


async def accept_test(
    context: AppContext, agent: AgentRow, body: AgentTestResult
) -> AgentTestResponse:
    """Stores the result of a test that is leased to the agent."""
    return AgentTestResponse(accepted=await _store(context, agent, body.test_id, _result(body)))


async def _store(context: AppContext, agent: AgentRow, uid: UUID, result: Result) -> bool:
    async with context.pool.transaction("answer_agent_test") as tx:
        return await answer_test(tx, agent, uid, json.encode(result).decode())


def _result(body: AgentTestResult) -> Result:
    return Result(
        started_at=from_datetime(body.ts),
        outcome=body.outcome,
        latency_ms=body.latency_ms,
        code=given(body.code),
        msg=body.msg[:MESSAGE_LONGEST],
        phases=Phases(
            dns_us=given(body.phases.dns_us),
            connect_us=given(body.phases.connect_us),
            tls_us=given(body.phases.tls_us),
            first_byte_us=given(body.phases.first_byte_us),
            total_us=body.phases.total_us,
            unfinished=given(body.phases.unfinished),
        ),
        unknown_reason=given(body.reason),
        failed=_failed(body),
    )


def _failed(body: AgentTestResult) -> FailedCondition | None:
    found = given(body.failed_condition)
    return None if found is None else FailedCondition(found.condition, given(found.measured))
