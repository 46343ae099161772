"""Children of composites: monitors of the same project, without cycles, at limited depth."""

from uuid import UUID

import msgspec

from ....probes.check.registry import spec_of
from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ..rules.composite import DEPTH_MOST, CompositeMode, depth_through, leads_back
from ..rules.monitor import MonitorDraft, MonitorType
from ..tables import compositions, monitors

FIELD = "config.children"


def with_canonical_config(draft: MonitorDraft) -> MonitorDraft:
    """Returns the draft with its children as a list of ids, and its scenario in the present form.

    The draft must be checked.
    """
    spec = spec_of(draft.type)
    if spec is None:
        return draft
    if draft.type == MonitorType.COMPOSITE:
        return msgspec.structs.replace(draft, config=spec.read(draft.config)[0])
    if draft.type == MonitorType.SYNTHETIC and draft.config.get("scenario"):
        scenario = spec.read(draft.config)[0]["scenario"]
        return msgspec.structs.replace(draft, config={**draft.config, "scenario": scenario})
    return draft


async def make_of_children(tx: Tx, key: MonitorKey, project: int, draft: MonitorDraft) -> None:
    """Writes the children of a composite. Requires the lock of the project's compositions.

    Raises:
        Refused invalid if a child is not in the project, or on a cycle or too deep nesting.
    """
    children = await _resolve(tx, key, project, draft)
    mode = CompositeMode(str(draft.config["mode"]))
    quorum = int(draft.config.get("quorum") or 0)
    await compositions.add_composition(tx, key, mode.value, quorum, children, tx.now)


async def _resolve(tx: Tx, key: MonitorKey, project: int, draft: MonitorDraft) -> list[int]:
    uids = [UUID(text) for text in draft.config["children"]]
    known = await monitors.select_ids(tx, key[0], project, uids)
    if len(known) != len(uids):
        raise Refused("invalid", FIELD, "is not a monitor of this project")
    children = [known[uid] for uid in uids]
    edges = await compositions.select_children(tx, key[0], project)
    edges[key] = [MonitorKey((key[0], child)) for child in children]
    if leads_back(key, edges):
        raise Refused("invalid", FIELD, "must not lead back to the monitor itself")
    if depth_through(key, edges) > DEPTH_MOST:
        raise Refused("invalid", FIELD, f"must not be more than {DEPTH_MOST} levels deep")
    return children
