"""Routes for agents: claim jobs, upload results, report presence.

The token of an agent is valid for one region or, if configured, for any. Its claims are leased to
it alone. Secrets in jobs are encrypted here for the token of the claiming request.
"""

import logging
import os
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import trio
from msgspec import UNSET, Meta

from ....probes.jobs.agent_protocol import (
    CAPABILITY,
    CERTIFICATES,
    CHECK_TEST,
    CRON_SCHEDULE,
    INSTANCE_HEADER,
    JOBS_MOST,
    KINDS_HEADER,
    OPTIONS,
    WAIT_SECONDS_MOST,
    AgentCertificates,
    AgentCertificatesResponse,
    AgentHeartbeat,
    AgentHeartbeatResponse,
    AgentTestResponse,
    AgentTestResult,
    Generation,
    Job,
    Jobs,
    RefusedResult,
    Results,
    ResultsResponse,
    read_kinds,
    spelt,
    window_job_id,
)
from ....probes.jobs.envelope import NONCE_BYTES, SALT_BYTES, Contents, seal
from ....storage.accounts.rules.access import Need, Permission
from ....storage.agents import rows as agents_rows
from ....storage.agents.rows import AgentRow
from ....storage.agents.rules import Unstorable
from ....storage.agents.transactions import accept_results, record_agent_contact
from ....storage.agents.transactions.accept_certificates import accept_certificates
from ....storage.agents.transactions.accept_results import accept_job_results
from ....storage.agents.transactions.claim_jobs import ClaimedJobs, claim_jobs
from ....storage.agents.transactions.record_agent_contact import record_probe_errors
from ....storage.agents.transactions.try_checks import lease_tests
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.core.key import MonitorKey
from ....storage.engine.keyring import CannotOpen
from ....storage.monitors.rows import CheckTest, ProbeErrorReason
from ....storage.monitors.transactions.config_secrets import join
from ....storage.monitors.transactions.resolve_secrets import OpenedConfig, open_material
from ....storage.results.rules.incoming_result import (
    RECORDER_STOPPED,
    IncomingResult,
    ResultSource,
    StoreOutcome,
    StoreResult,
)
from ....storage.scheduling.queries import shards as shards_queries
from ....storage.scheduling.rules.run_schedule import anchor_for
from ...wire.agent_credential import AgentCredential, still_opens
from ...wire.app_context import AppContext
from ...wire.database_wait import CONNECTION_SECONDS
from ...wire.errors import Problem
from ...wire.local_credentials import bearer_of
from ...wire.route import Request, Route
from .check_test_jobs import accept_test, test_jobs

log = logging.getLogger("leadline.agents")

_KNOWN_KINDS: Final = frozenset(
    {*CAPABILITY.values(), CHECK_TEST, CRON_SCHEDULE, *OPTIONS.values()}
)
# Reason for a result that PostgreSQL rejects. The log contains the cause.
_NOT_STORED: Final = "cannot be stored at its instant"
Region = Annotated[str, Meta(min_length=1, max_length=63)]


class InRegion(msgspec.Struct, frozen=True):
    region: Region


class ClaimQuery(InRegion, frozen=True):
    max: Annotated[int, Meta(ge=1, le=JOBS_MOST)] = 10
    wait: Annotated[int, Meta(ge=0, le=WAIT_SECONDS_MOST)] = 20


async def claim(ask: Request) -> Jobs:
    context, query = ask.context, ask.query
    kinds = read_kinds(ask.headers.get(KINDS_HEADER, "")) & _KNOWN_KINDS
    agent = await _hear(ask)

    async def look() -> list[ClaimedJobs | CheckTest]:
        async with context.pool.transaction("claim_jobs") as tx:
            if not await still_opens(tx, _credential(ask)):
                raise Problem("unauthorized")
            tests = await lease_tests(tx, agent, kinds, query.max)
            most = query.max - len(tests)
            shards = [s.id for s in await shards_queries.select_shards(tx, [agent.region])]
            if not shards or not most:
                return [*tests]
            places = context.options.canary_places
            return [*tests, *await claim_jobs(tx, agent, kinds, shards, most, places)]

    # Agents with different abilities have separate turns: an agent with fewer would find no jobs in
    # another's turn.
    turn = " ".join([agent.region, str(agent.carrier), *sorted(kinds)])
    found = await context.lookout.wait_for(turn, query.wait, look)
    token = bearer_of(ask.headers.get("authorization", ""))
    leased = [item for item in found if isinstance(item, CheckTest)]
    tests = await test_jobs(context, agent, leased, token)
    runs = [item for item in found if isinstance(item, ClaimedJobs)]
    return Jobs(jobs=await _materialize(ask, runs), tests=tests or UNSET)


async def _hear(ask: Request) -> AgentRow:
    """Records contact of the requesting agent and returns it.

    Raises: Problem forbidden if the token is of another region; Problem with a message if the
    region is not configured.
    """
    region, credential = ask.query.region, _credential(ask)
    if credential.region not in (None, region):
        raise Problem("forbidden")
    if region not in ask.context.options.regions:
        raise Problem("region: is not known")
    async with ask.context.pool.transaction("record_agent_seen") as tx:
        return await record_agent_contact.hear(
            tx, credential.source, region, _instance(ask), credential.name
        )


def _credential(ask: Request) -> AgentCredential:
    assert ask.agent is not None, "this route asks for an agent's token"
    return ask.agent


def _instance(ask: Request) -> UUID:
    try:
        return UUID(ask.headers.get(INSTANCE_HEADER, ""))
    except ValueError:
        return agents_rows.NOBODY


async def _materialize(ask: Request, runs: list[ClaimedJobs]) -> list[Job]:
    """Returns jobs with their secrets encrypted for the token of this request.

    A run that cannot be prepared stays leased, and the reason is recorded at the monitor. A canary
    releases its place.
    """
    token = bearer_of(ask.headers.get("authorization", ""))
    jobs: list[Job] = []
    troubles: dict[MonitorKey, tuple[ProbeErrorReason, Instant]] = {}
    unready: list[tuple[MonitorKey, Instant]] = []
    for run in runs:
        try:
            material = open_material(ask.context.keyring, run.definition)
        except CannotOpen:
            log.exception("secrets of a monitor cannot be decrypted", extra=_monitors_by_uid(run))
            trouble = ProbeErrorReason.DECRYPT_FAILED
        else:
            if not material.missing:
                jobs.append(_job(run, material, token))
                continue
            trouble = ProbeErrorReason.MISSING_REFERENCE
        key = MonitorKey((run.definition.org, run.definition.id))
        troubles[key] = (trouble, ask.context.clock())
        unready.append((key, run.due))
    if troubles:
        async with ask.context.pool.transaction("record_probe_errors") as tx:
            await record_probe_errors(tx, troubles)
            for key, due in unready:
                # Otherwise the region would have one place less, which would refuse the next
                # window.
                await accept_results.end_window(tx, key, due)
    return jobs


def _monitors_by_uid(run: ClaimedJobs) -> dict[str, str]:
    return {"monitor": str(run.definition.uid)}


def _job(run: ClaimedJobs, material: OpenedConfig, token: str) -> Job:
    d = run.definition
    anchor = run.due if d.schedule else anchor_for(d.uid, d.interval_seconds * SECOND, run.due)
    job = Job(
        job_id=run.job or window_job_id(d.uid, run.due, d.revision),
        monitor_id=d.uid,
        due_at=to_text(run.due),
        type=d.type,
        target=d.target,
        config=spelt(material.plain),
        method=d.method,
        conditions=d.conditions,
        retries=d.retries,
        revision=d.revision,
        timeout_seconds=d.timeout_seconds,
        interval_seconds=d.interval_seconds,
        anchor=to_text(anchor),
        lease_expires_at=to_text(run.lease_until),
        carrier=int(run.carrier),
        show_values=d.show_values or UNSET,
        schedule=d.schedule or UNSET,
        timezone=(d.timezone or "UTC") if d.schedule else UNSET,
    )
    if run.carrier is Generation.PLAIN:
        return job
    whole = join(material.plain, material.secret)
    contents = Contents(
        config=spelt({key: whole[key] for key in material.secret}), secrets=material.values
    )
    return seal(job, contents, token, os.urandom(SALT_BYTES), os.urandom(NONCE_BYTES))


async def heartbeat(ask: Request) -> AgentHeartbeatResponse:
    agent = await _hear(ask)
    body: AgentHeartbeat = ask.body
    async with ask.context.pool.transaction("agent_heartbeat") as tx:
        await record_agent_contact.record_heartbeat(
            tx, agent.holder, body.version, body.workflow_kinds, body.carrier
        )
    return AgentHeartbeatResponse(now=to_text(ask.context.clock()), accepts=[CERTIFICATES])


async def report_certificates(ask: Request) -> AgentCertificatesResponse:
    agent = await _hear(ask)
    body: AgentCertificates = ask.body
    work = partial(accept_certificates, region=agent.region, items=body.certificates)
    count = await ask.context.pool.transact("accept_certificates", work)
    return AgentCertificatesResponse(accepted=count)


async def report_test(ask: Request) -> AgentTestResponse:
    return await accept_test(ask.context, await _hear(ask), ask.body)


async def report(ask: Request, source: ResultSource) -> ResultsResponse:
    agent = await _hear(ask)
    body: Results = ask.body
    context = ask.context
    async with context.pool.transaction("accept_job_results") as tx:
        arrivals = await accept_job_results(
            tx, agent.region, body.results, source, context.options.heartbeat_days
        )
    reasons = {n: a.reason for n, a in enumerate(arrivals) if isinstance(a, Unstorable)}
    known = {n: a for n, a in enumerate(arrivals) if isinstance(a, IncomingResult)}
    stored = await _record(context, list(known.values()))
    for n, recorded in zip(known, stored, strict=True):
        if recorded.fate is StoreOutcome.REFUSED:
            reasons[n] = _NOT_STORED
    fates = [recorded.fate for recorded in stored]
    accepted = sum(fate in (StoreOutcome.LIVE, StoreOutcome.HISTORY) for fate in fates)
    duplicate = sum(fate is StoreOutcome.DUPLICATE for fate in fates)
    refused = [RefusedResult(index=n, reason=reasons[n]) for n in sorted(reasons)]
    return ResultsResponse(
        accepted=accepted,
        duplicate=duplicate,
        ignored=len(arrivals) - accepted - duplicate - len(refused),
        refused=refused or UNSET,
    )


async def _record(context: AppContext, arrivals: list[IncomingResult]) -> list[StoreResult]:
    """Stores results and returns the outcome of each after the commit.

    Raises: Problem internal_error if the process stops first; the agent repeats the batch.
    """
    until = trio.current_time() + CONNECTION_SECONDS
    found = await context.recorder.record_all(arrivals, until=until)
    for arrival, recorded in zip(arrivals, found, strict=True):
        if recorded.fate is StoreOutcome.REFUSED:
            if recorded.reason == RECORDER_STOPPED:
                raise Problem("internal_error")
            extra = {"monitor": arrival.monitor, "cause": recorded.reason}
            log.error("agent result not stored", extra=extra)
    return found


def _route(method: str, name: str, handler: Any, summary: str, **more: Any) -> Route:
    return Route(
        method=method,
        path=f"/api/v1/agent/{name}",
        action=Permission(Need.AGENT),
        handler=handler,
        summary=summary,
        in_document=False,
        short=True,
        **more,
    )


ROUTES: Final = (
    _route(
        "GET",
        "jobs",
        claim,
        "Claim jobs; wait if there are none.",
        query=ClaimQuery,
        answer=Jobs,
        head=False,
    ),
    _route(
        "POST",
        "heartbeat",
        heartbeat,
        "Agent heartbeat with capabilities; returns the server time.",
        query=InRegion,
        body=AgentHeartbeat,
        answer=AgentHeartbeatResponse,
    ),
    _route(
        "POST",
        "results",
        partial(report, source=ResultSource.RUN),
        "Report the results of runs.",
        query=InRegion,
        body=Results,
        answer=ResultsResponse,
    ),
    _route(
        "POST",
        "tests",
        report_test,
        "Report the result of a test of a check before it is saved.",
        query=InRegion,
        body=AgentTestResult,
        answer=AgentTestResponse,
    ),
    _route(
        "POST",
        "certificates",
        report_certificates,
        "Report the certificates that checks saw.",
        query=InRegion,
        body=AgentCertificates,
        answer=AgentCertificatesResponse,
    ),
    _route(
        "POST",
        "backfill",
        partial(report, source=ResultSource.BACKFILL),
        "Report results of the time without a connection.",
        query=InRegion,
        body=Results,
        answer=ResultsResponse,
    ),
)
