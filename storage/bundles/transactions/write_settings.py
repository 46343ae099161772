"""Write of the settings of a project: objectives, gate policy, weekly report.

They are one object. A project whose settings are the defaults and that no bundle manages has none,
so a bundle of an empty project creates them.
"""

from typing import Any, Final
from uuid import UUID

import msgspec

from ...accounts.queries.object_marks import select_marks
from ...accounts.rows import ProjectRow
from ...accounts.rules.access import Principal
from ...accounts.transactions.object_marks import SETTINGS
from ...core.availability import OBJECTIVE_SCALE, objective_e4
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...gate.queries.gate_policies import select_policy
from ...gate.transactions.edit_policy import delete_policy, put_policy
from ...objectives.queries.project_targets import is_reported_weekly, select_project_targets
from ...objectives.transactions.set_monitor_objective import (
    aim_for_project,
    delete_project_objective,
    report_weekly,
)
from ..rows import ObjectRow
from ..rules.bundle import Bundle
from ..rules.bundle_owner import match_named
from ..rules.bundle_settings import (
    SETTINGS_UID,
    GatePolicyEntry,
    SettingsEntry,
    policy_document,
    policy_in_words,
)
from ..tables.bundle_ownership import ensure_marks
from .bundle_context import ApplySource, BundleContext, under
from .compared_section import ComparedSection, compare_section, write_section

SETTINGS_DEFAULTS: Final[dict[str, Any]] = {
    "objectives": {},
    "gate_policy": None,
    "weekly_report": False,
}
WantedSettings = ComparedSection[ObjectRow, SettingsEntry]


async def select_settings(tx: Tx, home: ProjectRow) -> list[ObjectRow]:
    """Returns the settings of a project as one object, none if they are the defaults of people."""
    targets = await select_project_targets(tx, home.org, home.id)
    policy = await select_policy(tx, home.org, home.id, None)
    settings = {
        "objectives": {
            window: target.objective / OBJECTIVE_SCALE for window, target in sorted(targets.items())
        },
        "gate_policy": policy_in_words(None if policy is None else policy.document),
        "weekly_report": await is_reported_weekly(tx, home.org, home.id),
    }
    mark = (await select_marks(tx, home.org, home.id, SETTINGS)).get(home.uid)
    if mark is None:
        is_default = settings == SETTINGS_DEFAULTS
        return [] if is_default else [ObjectRow(0, home.uid, SETTINGS_UID, settings)]
    marks = msgspec.structs.asdict(mark)
    return [ObjectRow(**marks, name=SETTINGS_UID, settings=settings)]


async def compare_settings(
    tx: Tx, bundle: Bundle, place: BundleContext, applied: ApplySource
) -> WantedSettings:
    """Compares the settings of the project.

    Raises:
        Refused with the faulty setting.
    """
    entries = bundle.project_settings
    if not bundle.states("project_settings"):
        return ComparedSection("project_settings", {}, {}, {})
    rows = await select_settings(tx, place.home)
    standing = match_named(
        "project_settings", rows, {uid: uid for uid in entries}, applied.provider
    )
    found = ComparedSection("project_settings", dict(entries), standing, {})
    before = {row.id: row.settings for row in rows}
    after = {uid: entry_in_words(entry) for uid, entry in entries.items()}
    compare_section(found, bundle, rows, applied, before, after, SETTINGS_DEFAULTS)
    return found


def entry_in_words(entry: SettingsEntry) -> dict[str, Any]:
    """Returns the settings of an entry.

    Raises:
        Refused invalid with the objective.
    """
    policy = None if entry.gate_policy is None else policy_document(entry.gate_policy)
    return {
        "objectives": {
            window: stored_objective(f"project_settings.objectives.{window}", objective)
            for window, objective in sorted(entry.objectives.items())
        },
        "gate_policy": policy_in_words(policy),
        "weekly_report": entry.weekly_report,
    }


def stored_objective(path: str, objective: float) -> float:
    """Returns an objective as it is stored, with four decimals.

    Raises:
        Refused invalid.
    """
    scaled = objective_e4(objective)
    if scaled is None:
        raise Refused("invalid", path, "must be above 0 and below 100, to four decimals")
    return scaled / OBJECTIVE_SCALE


async def write_settings(
    tx: Tx, place: BundleContext, wanted: WantedSettings, applied: ApplySource, *, is_plan: bool
) -> None:
    """Writes the settings of the project, after the services that its gate policy governs.

    Raises:
        Refused with the faulty setting.
    """
    home = place.home
    if wanted.drafts and not is_plan:
        await ensure_marks(tx, "project_settings", home.key, [home.uid])

    async def put(_: str, entry: SettingsEntry, row: ObjectRow | None) -> None:
        before = SETTINGS_DEFAULTS if row is None else row.settings
        await _put(tx, applied.principal, home, entry, before)

    order, ids = list(wanted.acts), {SETTINGS_UID: home.uid}
    await write_section(tx, home.org, wanted, order, put, ids, applied, is_plan=is_plan)


async def _put(
    tx: Tx, who: Principal, home: ProjectRow, entry: SettingsEntry, before: dict[str, Any]
) -> None:
    after = entry_in_words(entry)
    for window in before["objectives"].keys() - after["objectives"].keys():
        await delete_project_objective(tx, who, home.uid, window)
    for window, objective in entry.objectives.items():
        await aim_for_project(tx, who, home.uid, window, objective)
    await report_weekly(tx, who, home.uid, enabled=entry.weekly_report)
    with under("gate_policy"):
        await put_gate_policy(tx, who, home, None, None, entry.gate_policy)


async def put_gate_policy(
    tx: Tx,
    who: Principal,
    home: ProjectRow,
    service: UUID | None,
    key: int | None,
    entry: GatePolicyEntry | None,
) -> None:
    """Sets or deletes the gate policy of a locked service, or of the locked project.

    An equal policy writes no revision.

    Raises:
        Refused policy_invalid with its field.
    """
    before = await select_policy(tx, home.org, home.id, key)
    if entry is not None:
        expected = None if before is None else before.revision
        await put_policy(tx, who, home.uid, service, expected, policy_document(entry))
    elif before is not None:
        await delete_policy(tx, who, home.uid, service, before.revision)
