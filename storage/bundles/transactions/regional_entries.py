"""Regional monitors in a bundle: a composite entry with `regional`, whose children are its members.

The members are entries of the same bundle and have the settings of one check, so that people can
edit the regional monitor as a whole when the bundle has released it.
"""

from collections.abc import Iterable, Mapping, Set
from typing import Any, Final
from uuid import UUID

from ...core.key import MonitorKey
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...monitors.rows import MonitorRow
from ...monitors.rules.monitor import MonitorDraft, MonitorType
from ...monitors.tables.monitors import select_ids
from ...regional import tables
from ...regional.rules import is_member, spread_faults
from ..rules.bundle import FORMATS, Bundle, MonitorEntry
from ..rules.bundle_diff import BundleChange
from .bundle_context import BundleContext

REGIONAL: Final = "regional"


def state_regional(
    entry: MonitorEntry,
    form: int,
    row: MonitorRow | None,
    before: dict[str, Any] | None,
    after: dict[str, Any],
) -> None:
    """Adds the setting of a composite before and after the application."""
    after[REGIONAL] = entry.regional
    if row is None or before is None:
        return
    before[REGIONAL] = is_whole(row)
    # Formats 1 and 2 cannot state it. Other children end it.
    if form < FORMATS[-1] and before["config"] == after["config"]:
        after[REGIONAL] = is_whole(row)


def expect_regional_entries(
    bundle: Bundle, drafts: Mapping[str, MonitorDraft], own: Mapping[str, UUID]
) -> None:
    """Checks the entries with `regional`. `own` are the ids of all entries.

    Raises:
        Refused invalid with the entry and its field.
    """
    by_id = {own[uid]: draft for uid, draft in drafts.items()}
    taken: set[UUID] = set()
    for uid, entry in bundle.monitors.items():
        if not entry.regional:
            continue
        config = drafts[uid].config
        children = [UUID(text) for text in config["children"]]
        members = [by_id[child] for child in children if child in by_id]
        if wrong := _fault(config, children, members, taken):
            raise Refused("invalid", f"monitors.{uid}.{wrong[0]}", wrong[1])
        taken.update(children)


def _fault(
    config: Mapping[str, object],
    children: list[UUID],
    members: list[MonitorDraft],
    taken: set[UUID],
) -> tuple[str, str] | None:
    if config["mode"] != "quorum":
        return "config.mode", "must be quorum for a regional monitor"
    if len(members) != len(children):
        return "config.children", "must be monitors of the bundle for a regional monitor"
    if taken & set(children):
        return "config.children", "must not be members of two regional monitors"
    regions = [member.region for member in members]
    for fault in spread_faults(members[0].type, regions, int(str(config["quorum"]))):
        return "config.children", f"{fault.field} {fault.rule}"
    if not all(is_member(member, members[0]) for member in members):
        rule = "must have the same settings in each region, no incidents and no dependencies"
        return "config.children", f"{rule}, for a regional monitor"
    return None


def expect_whole(path: str, row: MonitorRow, wholes: Set[int], change: BundleChange) -> None:
    """Refuses a change of a part of a regional monitor that the bundle does not contain.

    `wholes` are the ids of the composites of the bundle.

    Raises:
        Refused invalid.
    """
    if row.regional_of is None or not change.fields:
        return
    if row.regional_of not in wholes:
        rule = "is a part of a regional monitor that is not in the bundle"
        raise Refused("invalid", path, rule)


async def write_regional(
    tx: Tx,
    bundle: Bundle,
    place: BundleContext,
    drafts: Mapping[str, MonitorDraft],
    own: Mapping[str, UUID],
    changes: Iterable[BundleChange],
) -> None:
    """Joins the parts of changed regional monitors, and separates those that are ordinary again."""
    org, project = place.home.org, place.home.id
    for change in changes:
        entry = bundle.monitors.get(change.uid)
        names = {one.name.partition(".")[0] for one in change.fields}
        if entry is None or entry.type != MonitorType.COMPOSITE or not names & {REGIONAL, "config"}:
            continue
        children = [UUID(text) for text in drafts[change.uid].config["children"]]
        ids = await select_ids(tx, org, project, [*children, own[change.uid]])
        composite = MonitorKey((org, ids[own[change.uid]]))
        await tables.part(tx, composite)
        if entry.regional:
            await tables.join_parts(tx, composite, list(ids.values()))


def is_whole(row: MonitorRow) -> bool:
    return row.regional_of == row.id
