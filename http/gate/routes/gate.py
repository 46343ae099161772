"""Gate evaluation, and routes to read and write gate policies.

Invariant: a rejected request writes no row and costs no evaluation. Every answer is in the ledger.
A client that disconnects before the commit leaves no row.
"""

import logging
from functools import partial
from typing import Final

import msgspec
import trio

from ....storage.accounts.rules.access import Grant, Need, Permission
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Conflicted, Isolation, Tx
from ....storage.gate.queries.gate_policies import select_governing, select_policy
from ....storage.gate.rows import GatePolicyRow
from ....storage.gate.transactions.edit_policy import delete_policy, put_policy
from ....storage.gate.transactions.evaluate_gate import EVALUATE, EvaluatedDecision, evaluate_gate
from ....storage.services.transactions.lock_service import EDIT
from ...services.routes.service_json import service_named
from ...wire.errors import Problem
from ...wire.route import Handler, Request, Route
from ...wire.scope_keys import org_of, project_of
from ..schemas import EmptyGateBody, GateDecision, GatePolicy, GatePolicyWrite
from .gate_json import decision_json, document_of, policy_json

log = logging.getLogger("leadline.gate")

# Limit of an evaluation including its retry, in seconds. A pipeline retries by itself.
EVALUATE_SECONDS: Final = 10.0
ATTEMPTS: Final = 2
_REVISION_DIGITS_MOST: Final = 9


class ExpectedQuery(msgspec.Struct, frozen=True):
    expected_revision: str | None = None


async def evaluate(ask: Request) -> GateDecision:
    counts = ask.context.gate_counts
    began = trio.current_time()
    permit = ask.context.gate.permit(str(ask.who.uid), ask.context.clock())
    try:
        with permit:
            decided = await _decide(ask)
    except Problem as problem:
        (counts.rejected if problem.status == 429 else counts.errors)[problem.code] += 1
        raise
    except Refused:
        raise
    except Exception:
        counts.errors["internal_error"] += 1
        raise
    row = decided.row
    seconds = trio.current_time() - began
    counts.decided(row.state, row.action, row.unoverridden_action, seconds)
    return decision_json(row, decided.evidence)


async def _decide(ask: Request) -> EvaluatedDecision:
    async def work(tx: Tx) -> EvaluatedDecision:
        return await evaluate_gate(tx, ask.who, ask.ids["projectID"], ask.ids["serviceID"])

    with trio.move_on_after(EVALUATE_SECONDS):
        try:
            return await ask.context.pool.transact(
                "evaluate_gate", work, attempts=ATTEMPTS, isolation=Isolation.REPEATABLE_READ
            )
        except Conflicted as error:
            raise _later("snapshot_conflict") from error
        except Refused as refused:
            if refused.code != "ledger_unwritable":
                raise
            log.error("gate decision cannot be stored", extra={"cause": repr(refused.__cause__)})
            raise _later(refused.code) from refused
    raise _later("timeout")


def _later(code: str) -> Problem:
    return Problem(code, headers={"Retry-After": "1"})


async def read_policy(ask: Request) -> GatePolicy:
    """Returns the policy of the service, or the inherited policy of the project."""
    async with ask.context.pool.transaction("read_gate_policy", read_only=True) as tx:
        service = await service_named(ask, tx)
        return _policy(await select_governing(tx, service.org, service.project, service.id))


async def read_project_policy(ask: Request) -> GatePolicy:
    async with ask.context.pool.transaction("read_gate_policy", read_only=True) as tx:
        return _policy(await select_policy(tx, org_of(ask), project_of(ask), None))


def _policy(row: GatePolicyRow | None) -> GatePolicy:
    if row is None:
        raise Problem("not_configured")
    return policy_json(row)


async def write_policy(ask: Request) -> GatePolicy:
    """Writes the policy of the service if the path contains one, else of the project."""
    body: GatePolicyWrite = ask.body
    document = document_of(body)
    project, service = ask.ids["projectID"], ask.ids.get("serviceID")
    async with ask.context.pool.transaction("put_gate_policy") as tx:
        return policy_json(
            await put_policy(tx, ask.who, project, service, body.expected_revision, document)
        )


async def remove_policy(ask: Request) -> None:
    expected = _expected_revision(ask.query.expected_revision)
    project, service = ask.ids["projectID"], ask.ids.get("serviceID")
    async with ask.context.pool.transaction("delete_gate_policy") as tx:
        await delete_policy(tx, ask.who, project, service, expected)


def _expected_revision(text: str | None) -> int:
    if text is None:
        raise Problem("expected_revision_required")
    if not (text.isascii() and text.isdigit() and len(text) <= _REVISION_DIGITS_MOST):
        raise Problem("expected_revision_invalid")
    return int(text)


# A principal that may evaluate the gate may also read its policy and decisions.
READ: Final = Permission(Need.VIEWER, grant=Grant.GATE_EVALUATE)
SERVICE: Final = ("service", "serviceID")
PROJECT: Final = ("project", "projectID")
OF_PROJECT: Final = "/api/v1/projects/{projectID}/gate"
OF_SERVICE: Final = "/api/v1/projects/{projectID}/services/{serviceID}/gate"


def _policy_routes(
    path: str, scope: tuple[str, str], read: Handler, *, summaries: tuple[str, str, str]
) -> tuple[Route, ...]:
    """Returns the routes to read, put and remove a policy. `summaries` are in that order."""
    read_summary, put_summary, remove_summary = summaries
    route = partial(Route, path=path, scope=scope, tag="gate")
    return (
        route(method="GET", action=READ, handler=read, summary=read_summary, answer=GatePolicy),
        route(
            method="PUT",
            action=EDIT,
            handler=write_policy,
            summary=put_summary,
            body=GatePolicyWrite,
            answer=GatePolicy,
            also=(409,),
        ),
        route(
            method="DELETE",
            action=EDIT,
            handler=remove_policy,
            summary=remove_summary,
            query=ExpectedQuery,
            status=204,
            also=(409,),
        ),
    )


ROUTES: Final = (
    Route(
        method="POST",
        path=OF_SERVICE,
        action=EVALUATE,
        scope=SERVICE,
        handler=evaluate,
        takes_slugs=True,
        summary="Evaluate the release gate; the decision is stored with its evidence.",
        tag="gate",
        body=EmptyGateBody,
        body_optional=True,
        answer=GateDecision,
        also=(429, 503),
    ),
    *_policy_routes(
        f"{OF_SERVICE}/policy",
        SERVICE,
        read_policy,
        summaries=(
            "The policy that governs a service: its own, or the project's.",
            "Replace the service's own policy, or create it.",
            "Delete the service's own policy; the project's applies then, if it exists.",
        ),
    ),
    *_policy_routes(
        f"{OF_PROJECT}/policy",
        PROJECT,
        read_project_policy,
        summaries=(
            "Read the project's policy, which applies to services without their own.",
            "Replace the project's policy, or create it.",
            "Delete the project's policy.",
        ),
    ),
)
