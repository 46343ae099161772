"""Edits of a service's alerting settings.

An edit, except of the reminders alone, invalidates earlier evaluations, so that they neither page
nor suppress under new settings.
"""

from dataclasses import dataclass
from typing import Any, Final, TypeVar
from uuid import UUID

from ...accounts.rules.access import Principal
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused
from ...engine.pools import Tx
from ...services.transactions.lock_service import demand_service, expect_unmanaged, target_of
from ..rows import AlertingRow
from ..rules.alert_episode import CONFIRM_MOST
from ..tables.service_alerting import lock_alertings, update_alerting

RENOTIFY_LEAST: Final = 60
RENOTIFY_MOST: Final = 86_400
T = TypeVar("T")
# Fixed order of the stored values.
PAGES_ON: Final = ("down", "degraded")


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertingEdit:
    """Changes of settings; None keeps a value. An empty `page_on` disables known conditions."""

    owns_paging: bool | None = None
    page_on: frozenset[str] | None = None
    page_on_unknown: bool | None = None
    confirm_evaluations: int | None = None
    renotify_seconds: int | None = None


async def edit_alerting(
    tx: Tx, principal: Principal, project: UUID, service: UUID, edit: AlertingEdit
) -> AlertingRow:
    """Updates the settings; an edit without a difference writes no row.

    Raises:
        Refused not_found, forbidden, invalid, managed_by_file.
    """
    row = await demand_service(tx, principal, project, service)
    _check(edit)
    expect_unmanaged(principal, row)
    before = (await lock_alertings(tx, [row.key]))[row.key]
    page_on = frozenset(before.page_on) if edit.page_on is None else edit.page_on
    values: dict[str, Any] = {
        "owns_paging": _or(edit.owns_paging, before.owns_paging),
        "page_on": [one for one in PAGES_ON if one in page_on],
        "page_on_unknown": _or(edit.page_on_unknown, before.page_on_unknown),
        "confirm_evaluations": _or(edit.confirm_evaluations, before.confirm_evaluations),
        "renotify_seconds": _or(edit.renotify_seconds, before.renotify_seconds),
    }
    changed = [name for name, value in values.items() if value != getattr(before, name)]
    if not changed:
        return before
    after = await update_alerting(tx, before, **values)
    target = f"{target_of(row)} alerting {' '.join(changed)}"
    await audit(tx, principal, row.org, "service.update", target)
    return after


def _or(given: T | None, before: T) -> T:
    return before if given is None else given


def _check(edit: AlertingEdit) -> None:
    confirm, renotify = edit.confirm_evaluations, edit.renotify_seconds
    if confirm is not None and not 1 <= confirm <= CONFIRM_MOST:
        raise Refused("invalid", "confirm_evaluations", f"must be 1 to {CONFIRM_MOST}")
    if renotify and not RENOTIFY_LEAST <= renotify <= RENOTIFY_MOST:
        rule = f"must be 0, or {RENOTIFY_LEAST} to {RENOTIFY_MOST}"
        raise Refused("invalid", "renotify_seconds", rule)
    if edit.page_on is not None and not edit.page_on <= set(PAGES_ON):
        raise Refused("invalid", "page_on", f"must contain only {' and '.join(PAGES_ON)}")
