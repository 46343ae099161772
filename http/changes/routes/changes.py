"""Routes of changes: phases from pipelines, lists, comparisons and related incidents."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ....storage.accounts.rules.access import Grant, Need, Permission
from ....storage.changes.queries.change_comparison import select_comparison
from ....storage.changes.queries.change_timeline import select_timeline
from ....storage.changes.queries.changes import select_change, select_phases
from ....storage.changes.queries.preceding_changes import select_preceding
from ....storage.changes.rules.change import (
    ChangeDraft,
    ChangeFault,
    ChangeKind,
    Code,
    Record,
    external_id_rule_broken,
    kept,
    kind_rule_broken,
    read,
    source_rule_broken,
)
from ....storage.changes.rules.change_comparison import HORIZONS
from ....storage.changes.transactions import RECORD, record_change
from ....storage.core.instant import DAY, to_text
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Isolation
from ....storage.incidents.queries.incidents import select_incident
from ...services.routes.service_json import sealed_through, service_named
from ...wire.cursor import page_limit, read_cursor, write_cursor
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import given
from ...wire.time_params import instant_given, range_given
from ..schemas import (
    ChangeCompare,
    ChangeGroupList,
    ChangeRecord,
    ChangeRecordResult,
    ChangesQuery,
    CompareQuery,
    IncidentChange,
    IncidentChanges,
)
from .change_json import comparison_json, group_json, phase_json, row_json

RANGE_MOST_US: Final = 92 * DAY
_SERVICE: Final = "/api/v1/projects/{projectID}/services/{serviceID}/changes"
_INCIDENT: Final = "/api/v1/projects/{projectID}/incidents/{incidentID}/changes"


async def record(ask: Request) -> Response:
    """Records one phase. Malformed requests are refused before they count against the limit."""
    counts = ask.context.change_counts
    try:
        told = _record_given(ask.body)
        with ask.context.change_records.permit(str(ask.who.uid), ask.context.clock()):
            async with ask.context.pool.transaction("record_change") as tx:
                ids = ask.ids
                found = await record_change(tx, ask.who, ids["projectID"], ids["serviceID"], told)
    except (Problem, Refused) as refusal:
        counts.rejected[refusal.code.partition(":")[0]] += 1
        raise
    counts.recorded["replayed" if found.is_replay else "recorded"] += 1
    row = row_json(found.service.uid, found.change, found.phase)
    return Response(
        body=ChangeRecordResult(replayed=found.is_replay, change=row),
        status=200 if found.is_replay else 201,
    )


def _record_given(body: ChangeRecord) -> Record:
    occurred_at, decision = given(body.occurred_at), given(body.decision_id)
    found = read(
        ChangeDraft(
            kind=body.kind,
            phase=body.phase,
            source=body.source,
            external_id=body.external_id,
            ref=given(body.ref),
            url=given(body.url),
            occurred_at=None if occurred_at is None else instant_given("occurred_at", occurred_at),
            decision=None if decision is None else _uuid_given(decision),
        )
    )
    if isinstance(found, ChangeFault):
        raise Refused(found.code, found.field, found.rule)
    return found


def _uuid_given(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem("decision_id: must be a UUID") from None


async def list_changes(ask: Request) -> ChangeGroupList:
    query: ChangesQuery = ask.query
    within = range_given(query.from_, query.to, RANGE_MOST_US)
    limit = page_limit(query.limit)
    kinds = _kinds(query.kind)
    source = None if query.source is None else _source(query.source)
    bound = ("changes", str(ask.ids["serviceID"]), within.from_, within.until, source, *kinds)
    before = read_cursor(query.cursor, bound, 2)
    with ask.context.change_reads.permit("", ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction(
            "list_changes", read_only=True, isolation=Isolation.REPEATABLE_READ
        ) as tx:
            row = await service_named(ask, tx)
            last = None if before is None else (before[0], before[1])
            found = await select_timeline(tx, row.key, within, kinds, source, last, limit + 1)
    page = found[:limit]
    ask.context.change_counts.correlations += sum(len(group.incidents) for group in page)
    next_cursor = None
    if len(found) > limit:
        change = page[-1].change
        next_cursor = write_cursor([change.latest_at, change.id], bound)
    return ChangeGroupList(items=[group_json(each) for each in page], next_cursor=next_cursor)


async def compare(ask: Request) -> ChangeCompare:
    query: CompareQuery = ask.query
    source = _source(query.source)
    external_id = _external_id(query.external_id)
    if query.horizon not in HORIZONS:
        rule = f"must be one of {', '.join(HORIZONS)}"
        raise Problem(f"horizon_invalid: horizon: {rule}")
    with ask.context.change_reads.permit("", ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction(
            "compare_change", read_only=True, isolation=Isolation.REPEATABLE_READ
        ) as tx:
            row = await service_named(ask, tx)
            change = await select_change(tx, row.key, source, external_id)
            if change is None:
                raise Refused("not_found")
            phases = (await select_phases(tx, row.org, [change.id]))[change.id]
            found = await select_comparison(tx, row, phases, query.horizon)
            now = tx.now
    if found is None:
        raise Problem("no_terminal_phase")
    ask.context.change_counts.compares[found.outcome] += 1
    return comparison_json(change, phases, found, query.horizon, sealed_through(row), now)


async def list_preceding(ask: Request) -> IncidentChanges:
    with ask.context.change_reads.permit("", ask.context.clock(), takes_token=False):
        async with ask.context.pool.transaction(
            "list_preceding_changes", read_only=True, isolation=Isolation.REPEATABLE_READ
        ) as tx:
            incident = await select_incident(tx, ask.ids["incidentID"])
            if incident is None or incident.project_uid != ask.ids["projectID"]:
                raise Refused("not_found")
            found = await select_preceding(tx, incident)
            computed_at = to_text(tx.now)
    ask.context.change_counts.correlations += len(found)
    return IncidentChanges(
        items=[
            IncidentChange(
                change=row_json(each.service, each.change, each.phases[0]),
                role=each.role,
                occurred_at=to_text(each.change.started_at),
                lag_seconds=each.lag_seconds,
                computed_at=computed_at,
                phases=[phase_json(phase) for phase in each.phases],
            )
            for each in found
        ]
    )


def _kinds(texts: Sequence[str]) -> list[ChangeKind]:
    """Returns the requested kinds in a fixed order, all kinds if the list is empty."""
    for text in texts:
        rule = kind_rule_broken(text)
        if rule is not None:
            raise Refused(Code.KIND_INVALID, "kind", rule)
    return [kind for kind in ChangeKind if not texts or kind.value in texts]


def _source(text: str | None) -> str:
    source = kept(text or "")
    rule = source_rule_broken(source)
    if rule is not None:
        raise Refused(Code.SOURCE_INVALID, "source", rule)
    return source


def _external_id(text: str | None) -> str:
    external_id = kept(text or "")
    rule = external_id_rule_broken(external_id)
    if rule is not None:
        raise Refused(Code.EXTERNAL_ID_INVALID, "external_id", rule)
    return external_id


_READ: Final = Permission(Need.VIEWER, grant=Grant.CHANGE_RECORD)

ROUTES: Final = (
    Route(
        method="POST",
        path=_SERVICE,
        action=RECORD,
        scope=("service", "serviceID"),
        handler=record,
        takes_slugs=True,
        summary="Record a phase of a change; a repetition returns 200 with the stored phase.",
        tag="changes",
        body=ChangeRecord,
        answer=ChangeRecordResult,
        status=201,
        answers_too={200: ChangeRecordResult},
        also=(409, 429),
    ),
    Route(
        method="GET",
        path=_SERVICE,
        action=_READ,
        scope=("service", "serviceID"),
        handler=list_changes,
        summary="The changes of a range of at most 92 days, newest first; limit counts changes.",
        tag="changes",
        query=ChangesQuery,
        answer=ChangeGroupList,
        also=(429,),
    ),
    Route(
        method="GET",
        path=f"{_SERVICE}/compare",
        action=_READ,
        scope=("service", "serviceID"),
        handler=compare,
        summary="Availability before a change and after it.",
        tag="changes",
        query=CompareQuery,
        answer=ChangeCompare,
        also=(429,),
    ),
    Route(
        method="GET",
        path=_INCIDENT,
        action=_READ,
        scope=("incident", "incidentID"),
        handler=list_preceding,
        summary="The changes that began in the day before an incident; at most 200, newest first.",
        tag="changes",
        answer=IncidentChanges,
        also=(429,),
    ),
)
