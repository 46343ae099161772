"""Gate screen of a service: last decision, policy and overrides.

The screen never evaluates the gate. Only pipelines do, and each evaluation adds a ledger row.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from ....storage.accounts.rules.access import Need, Permission, Rank, rank_in
from ....storage.core.instant import DAY, HOUR, LATEST, Instant
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Isolation, Tx
from ....storage.gate.queries.gate_decisions import select_decisions
from ....storage.gate.queries.gate_overrides import select_overrides
from ....storage.gate.queries.gate_policies import select_governing
from ....storage.gate.rows import DecisionRow, GateOverrideRow, GatePolicyRow
from ....storage.gate.rules.gate import GateState
from ....storage.gate.rules.gate_override import REASON_MOST, OverrideStatus
from ....storage.gate.rules.gate_policy import PolicySource
from ....storage.gate.transactions.edit_gate_overrides import (
    ADMIN,
    create_override,
    revoke_override,
    status_of,
)
from ....storage.services.queries.services import select_service
from ....storage.services.rows import ServiceRow
from ...ui.form_inputs import NONE, FieldFault
from ...ui.form_routes import page_route
from ...ui.form_values import stripped
from ...ui.formatting import Moment, duration, moment
from ...ui.gate_marks import MARKS
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ..routes.policy_replay import ReplayInputs, replayed, select_kept
from .decision_list import reason_texts, row_of
from .gate_text import document_lines
from .replay_plot import drawn

DAYS: Final = 30
RECENT: Final = 10
_UNTIL: Final = {
    "1h": ("1 hour", HOUR),
    "4h": ("4 hours", 4 * HOUR),
    "1d": ("1 day", DAY),
    "7d": ("7 days (maximum)", 7 * DAY),
}
_STATUS: Final = {
    OverrideStatus.ACTIVE: ("degraded", "active"),
    OverrideStatus.EXPIRED: ("pending", "expired"),
    OverrideStatus.REVOKED: ("pending", "ended"),
    OverrideStatus.INERT: ("paused", "another policy is in force"),
}
_ENDED: Final = {
    "manual": "revoked",
    "policy_changed": "ended by a policy change",
    "policy_deleted": "ended by deletion of the policy",
}


@dataclass(frozen=True, slots=True)
class GateOverrideItem:
    uid: UUID
    mark: str
    word: str
    by: str
    reason: str
    made: Moment
    until: Moment
    may_end: bool


@dataclass(frozen=True, slots=True)
class GateData:
    frame: PageLayout
    row: ServiceRow
    policy: GatePolicyRow | None
    overrides: Sequence[GateOverrideRow]
    decisions: Sequence[DecisionRow]
    kept: ReplayInputs
    now: Instant


async def render_gate(ask: Request) -> Response:
    return await _render(ask, {})


async def submit_gate(ask: Request) -> Response:
    """Creates or revokes an override."""
    service = ask.ids["serviceID"]
    act = stripped(ask, "act")
    # Browsers send line breaks as CRLF, and a stored text cannot contain CR.
    reason = stripped(ask, "reason").replace("\r\n", "\n")
    try:
        async with ask.context.pool.transaction("console_gate_override") as tx:
            row = await _service(tx, service)
            if act == "end":
                await revoke_override(tx, ask.who, row.project_uid, service, _uid(ask))
            elif act == "override":
                await _override(ask, tx, row, reason)
            else:
                raise Problem("Unknown action")
    except Refused as refused:
        return await _render(ask, {"reason": reason}, _fault(refused))
    return redirect(f"/services/{service}/gate")


async def _override(ask: Request, tx: Tx, row: ServiceRow, reason: str) -> None:
    if not 1 <= len(reason) <= REASON_MOST:
        raise Refused("invalid", "reason", f"must be 1–{REASON_MOST} characters")
    until, revision = _UNTIL.get(stripped(ask, "until")), stripped(ask, "revision")
    if until is None or not revision.isascii() or not revision.isdigit():
        raise Problem("Unknown action")
    source = stripped(ask, "source")
    if source not in list(PolicySource):
        raise Problem("Unknown action")
    await create_override(
        tx,
        ask.who,
        row.project_uid,
        row.uid,
        int(revision[:9]),
        reason,
        Instant(tx.now + until[1]),
        seen_source=PolicySource(source),
    )


def _uid(ask: Request) -> UUID:
    try:
        return UUID(stripped(ask, "override"))
    except ValueError:
        raise Problem("Unknown action") from None


def _fault(refused: Refused) -> FieldFault:
    said = {
        "override_active": "An override is already active. Revoke it below first.",
        "override_not_active": "The override had already ended.",
        "revision_conflict": "Another user changed the policy. Review it and retry.",
        "not_configured": "The policy was deleted; no override is possible.",
    }
    if refused.code in said:
        return FieldFault("", said[refused.code])
    if not refused.field:
        raise refused
    return FieldFault(refused.field, f"{refused.field.capitalize()} {refused.message}.")


async def _service(tx: Tx, uid: UUID) -> ServiceRow:
    row = await select_service(tx, uid)
    if row is None:
        raise Problem("not_found")
    return row


async def _gate(ask: Request) -> GateData:
    async with ask.context.pool.transaction(
        "console_gate", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        row = await _service(tx, ask.ids["serviceID"])
        return GateData(
            frame=await frame_of(ask, tx),
            row=row,
            policy=await select_governing(tx, row.org, row.project, row.id),
            overrides=await select_overrides(tx, row.key),
            decisions=await select_decisions(
                tx, row.org, row.project, row.id, Instant(0), LATEST, list(GateState), None, RECENT
            ),
            kept=await select_kept(tx, row, DAYS),
            now=tx.now,
        )


async def _render(ask: Request, typed: dict[str, str], fault: FieldFault = NONE) -> Response:
    gate = await _gate(ask)
    assert ask.scope is not None, "it is of a project"
    may_override = rank_in(ask.who, ask.scope) >= Rank.PROJECT_ADMIN
    overrides = [_item(gate, one, may_end=may_override) for one in gate.overrides]
    last = gate.decisions[0] if gate.decisions else None
    policy = gate.policy
    return page(
        "gate/console/gate_screen.html",
        status=400 if fault.text else 200,
        frame=gate.frame,
        row=gate.row,
        mark="pending" if last is None or policy is None else MARKS[last.state],
        sentence=_summary(gate, last),
        last=None if last is None else row_of(last, gate.now),
        policy=policy,
        policy_lines=[] if policy is None else document_lines(policy.document),
        policy_at=None if policy is None else moment(policy.began_at, gate.now),
        may_override=may_override,
        active=next((one for one in overrides if one.word == "active"), None),
        overrides=overrides,
        until=[(name, words) for name, (words, _) in _UNTIL.items()],
        reason=typed.get("reason", ""),
        reason_most=REASON_MOST,
        decisions=[row_of(one, gate.now) for one in gate.decisions],
        replay=drawn(await replayed(gate.kept, None), has_draft=False),
        fault=fault,
    )


def _summary(gate: GateData, last: DecisionRow | None) -> str:
    """Returns the last decision in the past tense, as policy and override can have changed."""
    if gate.policy is None:
        return f"{gate.row.name} has no gate policy"
    if last is not None:
        return f"Last decision: {reason_texts(last)}"
    return f"No gate decisions for {gate.row.name} yet"


def _item(gate: GateData, override: GateOverrideRow, *, may_end: bool) -> GateOverrideItem:
    status = status_of(override, gate.policy, gate.now)
    mark, word = _STATUS[status]
    if override.revoked_reason is not None:
        word = _ENDED[override.revoked_reason]
    elif status is OverrideStatus.EXPIRED:
        word = f"expired after {duration(override.expires_at - override.created_at)}"
    return GateOverrideItem(
        override.uid,
        mark,
        word,
        override.actor_label,
        override.reason,
        moment(override.created_at, gate.now),
        moment(override.expires_at, gate.now),
        may_end and status in (OverrideStatus.ACTIVE, OverrideStatus.INERT),
    )


_GATE: Final = "/services/{serviceID}/gate"
_SERVICE: Final = ("service", "serviceID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_GATE,
        action=Permission(Need.VIEWER),
        scope=_SERVICE,
        handler=render_gate,
        summary="Release gate of a service.",
    ),
    page_route(
        method="POST",
        path=_GATE,
        action=ADMIN,
        scope=_SERVICE,
        handler=submit_gate,
        summary="Create or revoke a gate override.",
    ),
)
