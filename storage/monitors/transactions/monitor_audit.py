"""What the audit says of a monitor that is written, and that what its runs make may stay.

A canary's workflow is sealed once it is stored, so this is asked of the draft, which holds it.
"""

from ....probes.check.registry import spec_of
from ....probes.kinds.canary.fixtures import FIXTURES
from ....probes.kinds.canary.workflow import BadWorkflow, NoCleanup, read_workflow
from ..rows import MonitorRow
from ..rules.monitor import MonitorDraft, MonitorType

NO_CLEANUP = "cleanup=none acknowledged"


def target_of(row: MonitorRow) -> str:
    """As the audit names a monitor."""
    return f"monitor:{row.uid} slug={row.slug} type={row.type} region={row.region}"


def audited(target: str, draft: MonitorDraft) -> str:
    """The audit's target, with a clause where somebody acknowledged that nothing is cleaned up."""
    return f"{target} {NO_CLEANUP}" if _leaves_what_it_makes(draft) else target


def _leaves_what_it_makes(draft: MonitorDraft) -> bool:
    spec = spec_of(draft.type)
    if draft.type != MonitorType.ASYNC_CANARY or spec is None:
        return False
    try:
        # As text or as an object, a document is read alike.
        workflow = read_workflow(spec.read(draft.config)[0].get("workflow"), FIXTURES)
    except BadWorkflow:
        return False
    return isinstance(workflow.cleanup, NoCleanup)
