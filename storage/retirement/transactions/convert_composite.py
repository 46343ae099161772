"""Conversion of a composite into a service with the same members and equivalent policies.

The service supersedes the composite, which runs until it is retired.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.key import MonitorKey, ServiceKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.queries import monitors as monitors_queries
from ...monitors.rows import MonitorRow
from ...monitors.rules.composite import CompositeMode
from ...monitors.rules.monitor import MonitorType
from ...monitors.tables import compositions, monitors
from ...monitors.tables.monitors import lock_shared_monitors
from ...monitors.transactions.lock_monitor import expect_no_part, expect_unmanaged_monitor
from ...monitors.transactions.monitor_audit import target_of
from ...oncall.queries.escalation_policies import select_policy_uids
from ...services.rows import ServiceRow
from ...services.rules.service_health import Policies
from ...services.tables import services
from ...services.transactions.create_service import ServiceDraft, create_service
from ...services.transactions.declare_service import DeclarationDraft, declare
from ...services.transactions.set_paging_target import lock_owning_policy
from ..rules import policies_of
from .set_successor import lock_with_project


@dataclass(frozen=True, slots=True)
class Converted:
    service: ServiceRow
    monitor: MonitorRow
    # True if a service had superseded it before.
    already: bool


async def convert_composite(
    tx: Tx, principal: Principal, monitor: UUID, sli: Sequence[UUID], raw_days: int
) -> Converted:
    """Creates and declares the service and marks it as the successor.

    Args:
        sli: children that become SLI members; all children become members.

    Raises:
        Refused not_found, forbidden, managed_by_file, invalid with its field, conversion_conflict
        if a service has the slug, service_quota.
    """
    before = await lock_with_project(tx, principal, monitor)
    if before.type != MonitorType.COMPOSITE:
        raise Refused("invalid", "type", "only a composite becomes a service")
    if before.superseded_by is not None:
        key = ServiceKey((before.org, before.superseded_by))
        return Converted((await services.select_services(tx, [key]))[key], before, already=True)
    expect_unmanaged_monitor(principal, before)
    expect_no_part(before)
    # An edit of the children takes the same lock.
    await compositions.lock_compositions_around(tx, monitor)
    config = msgspec.json.decode(before.config)
    children = [UUID(text) for text in config["children"]]
    policies = _policies(config, sli, await _live(tx, before, children))
    if before.slug in await services.select_service_slugs(tx, before.org, before.project):
        raise Refused("conversion_conflict", "slug", f"{before.slug} is taken by a service")
    await monitors.lock_monitors_of(tx, before.org, [before.id])
    await lock_shared_monitors(tx, before.org, before.project, children)
    draft = await _draft(tx, before)
    await lock_owning_policy(tx, before.org, before.project, draft.escalation_policy)
    tx.holds_all()
    made = await create_service(tx, principal, before.project_uid, draft)
    declared = DeclarationDraft(
        expected_revision=0, monitors=children, sli=list(sli), policies=policies
    )
    service = await declare(tx, principal, before.project_uid, made.uid, declared, raw_days)
    await monitors.set_superseded(tx, before.org, before.id, service.id)
    await audit(
        tx, principal, before.org, "monitor.convert", f"{target_of(before)} service={service.uid}"
    )
    row = await monitors_queries.select_monitor(tx, monitor)
    assert row is not None, "the locked monitor is missing"
    return Converted(service, row, already=False)


async def _live(tx: Tx, before: MonitorRow, children: Sequence[UUID]) -> dict[UUID, MonitorRow]:
    """Returns the children.

    Raises:
        Refused invalid, if a child is disabled or missing.
    """
    known = await monitors.select_ids(tx, before.org, before.project, list(children))
    rows = await monitors.select_monitors_by_key(
        tx, [MonitorKey((before.org, key)) for key in known.values()]
    )
    found = {row.uid: row for row in rows.values()}
    for child in children:
        row = found.get(child)
        if row is None or not row.enabled:
            named = child if row is None else row.slug
            raise Refused("invalid", "children", f"{named} is not live: it is paused or retired")
    return found


def _policies(
    config: dict[str, object], sli: Sequence[UUID], children: dict[UUID, MonitorRow]
) -> Policies:
    if not sli:
        fault = f"must name which of its {len(children)} children count"
        raise Refused("invalid", "sli", fault)
    for index, uid in enumerate(sli):
        if uid not in children:
            raise Refused("invalid", f"sli[{index}]", "is not a child of the composite")
    regions = [children[uid].region for uid in sli]
    quorum = config.get("quorum")
    found = policies_of(
        CompositeMode(str(config["mode"])), quorum if isinstance(quorum, int) else 0, regions
    )
    if isinstance(found, str):
        raise Refused("invalid", "quorum", found)
    return found


async def _draft(tx: Tx, before: MonitorRow) -> ServiceDraft:
    """Returns a draft with the name, slug and escalation policy of the composite."""
    policy = ""
    if before.escalation_policy is not None:
        uids = await select_policy_uids(tx, before.org, [before.escalation_policy])
        policy = str(uids[before.escalation_policy])
    return ServiceDraft(
        name=before.name,
        slug=before.slug,
        description=before.description,
        escalation_policy=policy,
    )
