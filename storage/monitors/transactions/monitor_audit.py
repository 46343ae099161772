"""Audit texts of monitors, including the acknowledgement of a missing cleanup.

A canary's workflow is encrypted when stored, so the draft is used.
"""

from ....probes.check.registry import spec_of
from ....probes.kinds.canary.fixtures import FIXTURES
from ....probes.kinds.canary.workflow import BadWorkflow, NoCleanup, read_workflow
from ..rows import MonitorRow
from ..rules.monitor import MonitorDraft, MonitorType

NO_CLEANUP = "cleanup=none acknowledged"


def target_of(row: MonitorRow) -> str:
    """Returns the audit name of a monitor."""
    return f"monitor:{row.uid} slug={row.slug} type={row.type} region={row.region}"


def audited(target: str, draft: MonitorDraft) -> str:
    """Returns the audit target, with a clause if a missing cleanup was acknowledged."""
    return f"{target} {NO_CLEANUP}" if _leaves_what_it_makes(draft) else target


def _leaves_what_it_makes(draft: MonitorDraft) -> bool:
    spec = spec_of(draft.type)
    if draft.type != MonitorType.ASYNC_CANARY or spec is None:
        return False
    try:
        # A document is read in the same way as text and as object.
        workflow = read_workflow(spec.read(draft.config)[0].get("workflow"), FIXTURES)
    except BadWorkflow:
        return False
    return isinstance(workflow.cleanup, NoCleanup)
