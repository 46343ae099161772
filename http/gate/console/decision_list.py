"""Ledger of a project's gate decisions, and the detail of one decision with its evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import LATEST, Instant
from ....storage.engine.pools import Isolation
from ....storage.gate.queries.gate_decisions import instant_of, select_decision, select_decisions
from ....storage.gate.rows import DecisionCursor, DecisionRow
from ....storage.gate.rules.gate import GateState
from ....storage.gate.rules.gate_evidence import Evidence
from ....storage.services.queries.services import select_services_of_project
from ....storage.services.rows import ServiceRow
from ...ui.form_routes import page_route
from ...ui.formatting import Moment, coverage, duration, moment, setting
from ...ui.gate_marks import MARKS, STATE_WORDS
from ...ui.reliability_text import LABELS
from ...ui.render import page
from ...ui.shell.page_layout import frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response
from ...wire.scope_keys import org_of, project_of
from .gate_text import ACTION_MARKS, because, lines, objective_of, used

PAGE_ROWS: Final = 50
SHOWN: Final = ("ALLOW", "WARN", "BLOCK", "UNKNOWN", "NOT_CONFIGURED")


class LedgerQuery(msgspec.Struct, frozen=True):
    state: Literal["", "ALLOW", "WARN", "BLOCK", "UNKNOWN", "NOT_CONFIGURED"] = ""
    # Service id, empty for all services.
    service: str = ""
    # Oldest decision of the previous list page.
    before: UUID | None = None


@dataclass(frozen=True, slots=True)
class DecisionItem:
    uid: UUID
    at: Moment
    mark: str
    word: str
    service: UUID | None
    name: str
    because: str
    by: str


@dataclass(frozen=True, slots=True)
class DecisionStat:
    label: str
    text: str
    note: str
    mark: str = ""


async def render_decision_list(ask: Request) -> Response:
    query: LedgerQuery = ask.query
    org, project = org_of(ask), project_of(ask)
    async with ask.context.pool.transaction(
        "console_gate_ledger", read_only=True, isolation=Isolation.REPEATABLE_READ
    ) as tx:
        frame = await frame_of(ask, tx)
        services = await select_services_of_project(tx, org, project)
        chosen = next((one for one in services if str(one.uid) == query.service), None)
        if query.service and chosen is None:
            raise Problem("not_found")
        states = [GateState(query.state)] if query.state else list(GateState)
        before = (
            None if query.before is None else DecisionCursor(instant_of(query.before), query.before)
        )
        found = await select_decisions(
            tx,
            org,
            project,
            None if chosen is None else chosen.id,
            Instant(0),
            LATEST,
            states,
            before,
            PAGE_ROWS + 1,
        )
        now = tx.now
    shown = found[:PAGE_ROWS]
    return page(
        "gate/console/decision_list.html",
        frame=frame,
        rows=[row_of(one, now) for one in shown],
        services=services,
        chosen=chosen,
        state=query.state,
        states=[(name, STATE_WORDS[GateState(name)]) for name in SHOWN],
        is_later=query.before is not None,
        oldest=shown[-1].uid if len(found) > PAGE_ROWS else None,
        sentence=_summary(shown, chosen),
    )


def _summary(rows: Sequence[DecisionRow], chosen: ServiceRow | None) -> str:
    if chosen is not None:
        return f"Decisions about {chosen.name}"
    return "Release gate decisions" if rows else "No gate decisions yet"


def row_of(row: DecisionRow, now: Instant) -> DecisionItem:
    why = because(row.reasons)
    if row.action != row.unoverridden_action:
        why += f"; overridden, effective action {row.action}"
    return DecisionItem(
        row.uid,
        moment(row.evaluated_at, now),
        MARKS[row.state],
        STATE_WORDS[row.state],
        row.service_uid,
        row.service_name,
        why,
        row.actor_label,
    )


async def show_one(ask: Request) -> Response:
    async with ask.context.pool.transaction("console_gate_decision", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        found = await select_decision(tx, org_of(ask), project_of(ask), ask.ids["decisionID"])
        now = tx.now
    if found is None:
        raise Problem("not_found")
    row, evidence = found
    return page(
        "gate/console/decision.html",
        frame=frame,
        row=row,
        mark=MARKS[row.state],
        sentence=reason_texts(row),
        at=moment(row.evaluated_at, now),
        figures=_figures(row, evidence, now),
        lines=lines(evidence),
        windows=_windows(evidence),
        burns=_burns(evidence, now),
        override=evidence.override,
        until=None if evidence.override is None else moment(evidence.override.expires_at, now),
    )


def reason_texts(row: DecisionRow) -> str:
    """Returns the first line of a decision."""
    match row.action:
        case None:
            return f"{row.service_name} has no policy"
        case "BLOCK":
            return f"{row.service_name} must not be released: BLOCK"
        case "WARN":
            return f"{row.service_name} may be released with a warning: WARN"
    overridden = row.unoverridden_action == "BLOCK"
    return f"{row.service_name} may be released{' by an override' if overridden else ''}: ALLOW"


def _figures(row: DecisionRow, evidence: Evidence, now: Instant) -> list[DecisionStat]:
    found = [
        DecisionStat(
            "Observed state", STATE_WORDS[row.state], "worst matched clause", MARKS[row.state]
        )
    ]
    if row.action is not None:
        note = "no override"
        if evidence.override is not None:
            note = f"overridden by {evidence.override.actor_label}"
        found.append(
            DecisionStat("Effective action", row.action.value, note, ACTION_MARKS[row.action])
        )
    facts, policy = evidence.facts, evidence.policy
    if facts.sealed_through is None:
        found.append(DecisionStat("Data up to", "—", "no data yet"))
    else:
        lag_us = facts.at - facts.sealed_through
        lag = f"{duration(abs(lag_us))} {'before' if lag_us >= 0 else 'after'}"
        if policy is not None:
            lag += f", bound {setting(policy.document.max_seal_lag_seconds)}"
        found.append(DecisionStat("Data up to", moment(facts.sealed_through, now).text, lag))
    if policy is not None:
        found.append(
            DecisionStat("Policy", f"revision {policy.revision}", f"of the {policy.source}")
        )
    return found


def _windows(evidence: Evidence) -> list[list[str]]:
    rows = []
    for window in evidence.facts.windows:
        measured = window.good_us + window.bad_us
        counted = measured + window.unknown_us
        rows.append(
            [
                LABELS[window.window],
                objective_of(window),
                duration(window.good_us),
                duration(window.bad_us),
                duration(window.unknown_us),
                coverage(None) if not counted else f"{1000 * measured // counted / 10:g}%",
                used(window),
            ]
        )
    return rows


def _burns(evidence: Evidence, now: Instant) -> list[list[str]]:
    return [
        [
            rule.key,
            "firing" if rule.firing else (rule.last_verdict or "not evaluated"),
            "never" if rule.evaluated_at is None else moment(rule.evaluated_at, now).text,
        ]
        for window in evidence.facts.windows
        for rule in window.rules
    ]


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/projects/{projectID}/gate",
        action=_VIEW,
        scope=_PROJECT,
        handler=render_decision_list,
        summary="The ledger of the release gate.",
        query=LedgerQuery,
    ),
    page_route(
        method="GET",
        path="/projects/{projectID}/gate/decisions/{decisionID}",
        action=_VIEW,
        scope=_PROJECT,
        handler=show_one,
        summary="A decision of the release gate.",
    ),
)
