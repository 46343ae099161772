"""A check before it is saved: run once, from this process, and stored nowhere."""

from ..probes.check import make_check
from ..probes.kinds import spec_of
from ..probes.result import Result
from ..probes.run import run
from ..storage.rules.access import Scope
from ..storage.rules.refusal import Refused
from ..storage.transactions.monitors.draft import MonitorDraft, check_draft
from ..storage.transactions.secrets.follow_references import open_references
from .context import Context


def _refuse_bindings(draft: MonitorDraft) -> None:
    """Before it is saved nobody has decided that a document may use those secrets."""
    spec = spec_of(draft.type)
    assert spec is not None, "the draft was held against it"
    bindings = sorted(spec.bindings_of(draft.config))
    if bindings:
        fault = f"declares the binding {bindings[0]}: it is tested once it is saved"
        raise Refused("invalid", f"config.{spec.bindings}_{bindings[0]}_ref", fault)


async def try_out(context: Context, draft: MonitorDraft, home: Scope) -> Result:
    """Refused where the draft may not be; waits for one of the permits that tests have.

    `home` is the project whose secrets the draft may refer to: its editors may use them all.
    """
    check_draft(draft, context.options.regions)
    _refuse_bindings(draft)
    org, project = int(str(home.organization)), int(str(home.project))
    async with context.pool.transaction("open_references", read_only=True) as tx:
        values = await open_references(tx, org, project, draft.config, context.keyring)
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
    )
    async with context.test_permits:
        return await run(check, context.reach, context.clock)
