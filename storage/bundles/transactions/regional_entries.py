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
from ..rules.bundle_owner import is_left
from .bundle_context import ApplySource, BundleContext

REGIONAL: Final = "regional"


def state_regional(
    entry: MonitorEntry,
    form: int,
    row: MonitorRow | None,
    before: dict[str, Any] | None,
    after: dict[str, Any],
) -> bool:
    """Adds the setting of a composite before and after the application. Returns the latter."""
    if entry.type != MonitorType.COMPOSITE:
        return False
    after[REGIONAL] = entry.regional
    if row is not None and before is not None:
        before[REGIONAL] = is_whole(row)
        # Formats 1 and 2 cannot state it. Other children end it.
        if form < FORMATS[-1] and before["config"] == after["config"]:
            after[REGIONAL] = is_whole(row)
    return bool(after[REGIONAL])


def expect_regional_entries(
    wholes: Iterable[str],
    drafts: Mapping[str, MonitorDraft],
    own: Mapping[str, UUID],
    rows: Mapping[str, MonitorRow],
    applied: ApplySource,
) -> None:
    """Checks the regional monitors after the application. `own` are the ids of all entries.

    `wholes` are the uids of their composites.

    Raises:
        Refused invalid with the entry and its field.
    """
    uids = {key: uid for uid, key in own.items()}
    taken: set[UUID] = set()
    for uid in wholes:
        whole = rows.get(uid)
        if whole is not None and is_left(whole, applied):
            continue
        config = drafts[uid].config
        children = [UUID(text) for text in config["children"]]
        members = {uids[child]: drafts[uids[child]] for child in children if child in uids}
        wrong = _fault(config, children, list(members.values()), taken)
        wrong = wrong or _capture(whole, [rows[one] for one in members if one in rows], applied)
        if wrong:
            raise Refused("invalid", f"monitors.{uid}.{wrong[0]}", wrong[1])
        taken.update(children)


def _capture(
    whole: MonitorRow | None, members: Iterable[MonitorRow], applied: ApplySource
) -> tuple[str, str] | None:
    """Returns the fault of a member that belongs to people or to another regional monitor."""
    for row in members:
        if is_left(row, applied):
            rule = "must be monitors that the bundle creates or takes over"
            return "config.children", f"{rule}: {row.slug} is left to its owner"
        if row.regional_of is not None and (whole is None or row.regional_of != whole.id):
            return "config.children", f"{row.slug} is a part of another regional monitor"
    return None


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
