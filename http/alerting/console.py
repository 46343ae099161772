"""Form of the alerting policy of a service."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ...storage.alerting.queries.service_alerting import select_alerting
from ...storage.alerting.rules.alert_episode import CONFIRM_MOST
from ...storage.alerting.transactions.edit_alerting import (
    RENOTIFY_LEAST,
    RENOTIFY_MOST,
    AlertingEdit,
    edit_alerting,
)
from ...storage.core.refusal import Refused
from ...storage.core.runbook import RUNBOOK_LONGEST
from ...storage.oncall.queries.escalation_policies import select_policies_of
from ...storage.oncall.rows import EscalationPolicyRow
from ...storage.services.queries.services import select_service
from ...storage.services.rows import ServiceRow
from ...storage.services.transactions.set_paging_target import put_escalation_policy
from ...storage.services.transactions.set_runbook import put_runbook
from ...storage.services.transactions.set_support_hours import put_support_hours
from ..oncall.routes.weekly_windows import window_given, windows_spelt, windows_typed
from ..ui.form_inputs import NONE, FieldFault, fault_of, typed_of
from ..ui.form_values import stripped, value_of, whole_number
from ..ui.render import page, redirect
from ..ui.shell.page_layout import PageLayout, frame_of
from ..wire.errors import Problem
from ..wire.route import Request, Response

_TYPED: Final = ("confirm", "renotify", "policy", "runbook", "zone", "hours")


@dataclass(frozen=True, slots=True)
class AlertingFormData:
    frame: PageLayout
    row: ServiceRow
    policies: Sequence[EscalationPolicyRow]
    typed: Mapping[str, str]


async def show_alerting(ask: Request) -> Response:
    voice = await _voice(ask)
    return _alerting(voice, voice.typed)


async def send_alerting(ask: Request) -> Response:
    voice = await _voice(ask)
    row = voice.row
    try:
        edit = AlertingEdit(
            owns_paging="owns" in ask.form,
            page_on=frozenset(one for one in ("down", "degraded") if one in ask.form),
            page_on_unknown="unknown" in ask.form,
            confirm_evaluations=whole_number("confirm_evaluations", stripped(ask, "confirm")),
            renotify_seconds=whole_number("renotify_seconds", stripped(ask, "renotify") or "0"),
        )
        windows = [
            window_given("windows", one) for one in windows_typed("windows", value_of(ask, "hours"))
        ]
        zone = stripped(ask, "zone")
        async with ask.context.pool.transaction("console_edit_alerting") as tx:
            # Before the lock of the policy.
            await put_runbook(tx, ask.who, row.project_uid, row.uid, stripped(ask, "runbook"))
            await put_support_hours(tx, ask.who, row.project_uid, row.uid, zone, windows)
            await edit_alerting(tx, ask.who, row.project_uid, row.uid, edit)
            await put_escalation_policy(
                tx, ask.who, row.project_uid, row.uid, stripped(ask, "policy")
            )
    except Refused as refused:
        return _alerting(voice, typed_of(ask), fault_of(refused))
    return redirect(f"/services/{row.uid}")


async def _voice(ask: Request) -> AlertingFormData:
    async with ask.context.pool.transaction("console_alerting", read_only=True) as tx:
        row = await select_service(tx, ask.ids["serviceID"])
        if row is None:
            raise Problem("not_found")
        frame = await frame_of(ask, tx)
        policies = await select_policies_of(tx, row.org, row.project)
        alerting = await select_alerting(tx, row.key)
    typed = {"confirm": "2", "renotify": "0", "down": "on"}
    if alerting is not None:
        typed = {
            "confirm": str(alerting.confirm_evaluations),
            "renotify": str(alerting.renotify_seconds),
            **dict.fromkeys(alerting.page_on, "on"),
        }
        if alerting.owns_paging:
            typed["owns"] = "on"
        if alerting.page_on_unknown:
            typed["unknown"] = "on"
    typed["policy"] = str(row.escalation_policy_uid or "")
    typed["runbook"] = row.runbook_url
    typed |= {"zone": row.support_zone, "hours": windows_spelt(row.support_hours)}
    return AlertingFormData(frame, row, policies, typed)


def _alerting(
    voice: AlertingFormData, typed: Mapping[str, str], fault: FieldFault = NONE
) -> Response:
    return page(
        "alerting/console.html",
        status=400 if fault.text else 200,
        frame=voice.frame,
        row=voice.row,
        policies=voice.policies,
        ticked={name for name in ("owns", "down", "degraded", "unknown") if name in typed},
        typed={name: typed.get(name, "") for name in _TYPED},
        confirm_most=CONFIRM_MOST,
        renotify_least=RENOTIFY_LEAST,
        renotify_most=RENOTIFY_MOST,
        runbook_longest=RUNBOOK_LONGEST,
        fault=fault,
    )
