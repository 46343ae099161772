"""Test of a check before it is saved: one run in the monitor's region, not stored.

If this process does not probe in the region, a worker of the region runs the check, or an agent
that declares `check_test@1`. If there is none, or none claims it in time, the result states that.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

import msgspec
import trio
from uuid_utils.compat import uuid7

from ....probes.check.check import make_check, target_host
from ....probes.check.measured_value import is_admissible
from ....probes.check.registry import spec_of
from ....probes.check.result import (
    FailedCondition,
    Result,
    RunOutcome,
    UnknownReason,
    unobtained,
)
from ....probes.jobs.agent_protocol import capabilities_for
from ....probes.runner import run
from ....storage.accounts.rules.access import Scope
from ....storage.core.instant import SECOND, Instant
from ....storage.core.refusal import Refused, Unavailable
from ....storage.monitors.rows import NewCheckTest
from ....storage.monitors.rules.monitor import CANARY_TIMEOUT, MonitorDraft
from ....storage.monitors.transactions import run_check_test
from ....storage.monitors.transactions.check_test_document import close_document, document_of
from ....storage.monitors.transactions.expect_capabilities import expect_capabilities
from ....storage.monitors.transactions.lock_references import expect_key, open_references
from ....storage.monitors.transactions.monitor_draft import check_draft
from ....storage.scheduling.queries.region_list import select_usable_regions
from ....storage.scheduling.queries.region_workers import missing_tester
from ...wire.app_context import AppContext

# Time for a worker or agent of the region to claim the test, and poll interval for its answer.
BEGIN_SECONDS: Final = 10
LOOK_SECONDS: Final = 0.25
# A test runs here as long as its check may: a canary up to an hour, and it waits for a permit.
TEST_SECONDS: Final = CANARY_TIMEOUT.most + 60.0
# Requests are bounded, so an answer has this limit even if the timeout of the check is longer.
ANSWER_SECONDS_MOST: Final = 50


def _refuse_bindings(draft: MonitorDraft) -> None:
    """Refuses bindings: the use of those secrets is authorized only when the document is saved."""
    spec = spec_of(draft.type)
    assert spec is not None, "the draft was checked"
    bindings = sorted(spec.bindings_of(draft.config))
    if bindings:
        fault = f"declares the binding {bindings[0]}: it is tested once it is saved"
        raise Refused("invalid", f"config.{spec.bindings}_{bindings[0]}_ref", fault)


async def test_check(context: AppContext, draft: MonitorDraft, home: Scope) -> Result:
    """Tests a draft, after a wait for a test permit.

    `home` is the project whose secrets the draft may refer to. Editors of the project may use all
    of them.

    Raises: Refused, if the draft is not allowed.
    """
    options = context.options
    org, project = int(str(home.organization)), int(str(home.project))
    async with context.pool.transaction("resolve_references", read_only=True) as tx:
        regions = await select_usable_regions(tx, org, options.regions, options.reserved)
        check_draft(draft, regions)
        _refuse_bindings(draft)
        await expect_capabilities(tx, draft.type, draft.config)
        values = await open_references(tx, org, project, draft.config, context.keyring)
        expect_key(draft.config, values)
    if draft.region not in context.options.probed_here:
        async with context.test_permits:
            return await _try_elsewhere(context, draft, values, org)
    check = make_check(
        draft.type,
        draft.target,
        draft.method,
        draft.config,
        draft.conditions,
        retries=draft.retries,
        timeout_seconds=draft.timeout_seconds,
        interval_seconds=draft.interval_seconds,
        secrets=values,
        show_values=draft.show_values,
    )
    async with context.test_permits:
        return await run(check, context.reach, context.clock, org)


async def _try_elsewhere(
    context: AppContext, draft: MonitorDraft, values: dict[str, str], org: int
) -> Result:
    uid = uuid7()
    text, sealed = close_document(document_of(draft, values, org), context.keyring, uid)
    async with context.pool.transaction("request_check_test") as tx:
        needs = capabilities_for(draft.type, draft.config)
        missing = await missing_tester(tx, draft.region, needs)
        if missing is not None:
            return _not_run(context, draft, missing)
        test = NewCheckTest(
            uid=uid,
            region=draft.region,
            type=draft.type,
            needs=sorted(needs),
            document=text,
            sealed=sealed,
            until=Instant(tx.now + BEGIN_SECONDS * SECOND),
        )
        await run_check_test.insert_check_test(tx, test)
    try:
        seconds = min(BEGIN_SECONDS + draft.timeout_seconds, ANSWER_SECONDS_MOST)
        with trio.move_on_after(seconds):
            while True:
                await trio.sleep(LOOK_SECONDS)
                async with context.pool.statement("pop_check_test_result") as tx:
                    found = await run_check_test.pop_answer(tx, uid)
                if found is not None:
                    return _shown(msgspec.json.decode(found, type=Result), draft)
        return _not_run(context, draft, UnknownReason.NO_WORKER)
    finally:
        # Best effort: if this statement fails, retention deletes the row.
        with trio.move_on_after(LOOK_SECONDS, shield=True), suppress(Unavailable):
            async with context.pool.statement("delete_check_test") as tx:
                await run_check_test.delete_check_test(tx, uid)


def _shown(result: Result, draft: MonitorDraft) -> Result:
    """Returns the result without a failed condition or value that an agent must not state."""
    failed = result.failed
    if failed is None:
        return result
    if result.outcome is not RunOutcome.DOWN or failed.condition not in draft.conditions:
        return replace(result, failed=None)
    measured = failed.measured
    if measured is not None and not is_admissible(
        failed.condition, measured, show_values=draft.show_values
    ):
        measured = None
    return replace(result, failed=FailedCondition(failed.condition, measured))


def _not_run(context: AppContext, draft: MonitorDraft, why: UnknownReason) -> Result:
    host = target_host(draft.type, draft.target)
    return unobtained(context.clock(), host, why)
