"""Maintenance of all monitors with one of some tags, as an action that can be undone."""

from typing import Final
from uuid import UUID

from ....storage.bulk.rules import OBJECTS_MOST, BulkAct
from ....storage.bulk.transactions import begin_action
from ....storage.core.instant import SECOND, Instant, to_text
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.maintenance.transactions.plan_maintenance import Plan
from ....storage.monitors.queries.monitor_pages import MonitorSelection, select_monitor_page
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of

TAGS_MOST: Final = 32


async def begin_tagged(ask: Request, tx: Tx, plan: Plan, tags: str, rule: str) -> UUID:
    """Begins the action for the monitors that have one of the tags now; returns its operation.

    `tags` are separated by commas. A plan that begins now begins one second later.

    Raises: Refused with the field `tags`, or as `begin_action`.
    """
    words = tuple(dict.fromkeys(filter(None, (word.strip() for word in tags.split(",")))))
    if not 1 <= len(words) <= TAGS_MOST:
        raise Refused("invalid", "tags", f"give 1 to {TAGS_MOST} words")
    if plan.monitor is not None or rule:
        rest = "Monitor" if plan.monitor is not None else "Repeats"
        raise Refused("invalid", "tags", f"cannot be combined with {rest}")
    if plan.public_title:
        raise Refused("invalid", "public_title", "cannot be combined with Tags")
    found = await select_monitor_page(
        tx, org_of(ask), project_of(ask), MonitorSelection(tags=words), "", OBJECTS_MOST + 1
    )
    if not found:
        raise Refused("invalid", "tags", "no monitor has one of them")
    if len(found) > OBJECTS_MOST:
        raise Refused("invalid", "tags", f"select more than {OBJECTS_MOST} monitors")
    starts = plan.starts_at if plan.starts_at != tx.now else Instant(tx.now + SECOND)
    values = {"starts_at": to_text(starts), "ends_at": to_text(plan.ends_at), "reason": plan.reason}
    objects = [(one.uid, one.name) for one in found]
    project = ask.ids["projectID"]
    return await begin_action(tx, ask.who, project, BulkAct.MAINTAIN, values, objects)
