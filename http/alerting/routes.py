"""Routes of the alerting of a service: policy, state and burn alerts."""

from typing import Final

from ...storage.accounts.rules.access import Need, Permission
from ...storage.alerting.queries.service_alerting import select_alerting
from ...storage.alerting.transactions.edit_alerting import AlertingEdit, edit_alerting
from ...storage.core.instant import SECOND
from ...storage.core.key import ServiceKey
from ...storage.objectives.queries.burn_rules import select_rules_of_services
from ...storage.objectives.rules import DEFAULT_RULES, BurnRule, BurnSeverity, threshold_of
from ...storage.objectives.transactions.set_service_objective import put_burn_alerting
from ...storage.services.transactions.lock_service import EDIT
from ..services.routes.service_json import alerting_json, service_named, state_json
from ..services.schemas.services import (
    BurnRuleDeclaration,
    PatchServiceAlertingRequest,
    ServiceAlerting,
    ServiceAlertingState,
    ServiceBurnAlerting,
    SetServiceBurnAlertingRequest,
)
from ..wire.errors import Problem
from ..wire.route import Request, Route
from ..wire.schema import given, known

_ONE: Final = "/api/v1/projects/{projectID}/services/{serviceID}"


async def read(ask: Request) -> ServiceAlerting:
    async with ask.context.pool.transaction("read_alerting", read_only=True) as tx:
        row = await select_alerting(tx, (await service_named(ask, tx)).key)
    if row is None:
        raise Problem("not_found")
    return alerting_json(row)


async def read_state(ask: Request) -> ServiceAlertingState:
    async with ask.context.pool.transaction("read_alerting_state", read_only=True) as tx:
        row = await service_named(ask, tx)
        return await state_json(tx, row.key)


async def edit(ask: Request) -> ServiceAlerting:
    body: PatchServiceAlertingRequest = ask.body
    page_on = given(body.page_on)
    wanted = AlertingEdit(
        owns_paging=given(body.owns_paging),
        page_on=None if page_on is None else frozenset(page_on),
        page_on_unknown=given(body.page_on_unknown),
        confirm_evaluations=given(body.confirm_evaluations),
        renotify_seconds=given(body.renotify_seconds),
    )
    async with ask.context.pool.transaction("edit_alerting") as tx:
        row = await edit_alerting(tx, ask.who, ask.ids["projectID"], ask.ids["serviceID"], wanted)
    return alerting_json(row)


async def write_burn_alerting(ask: Request) -> ServiceBurnAlerting:
    body: SetServiceBurnAlertingRequest = ask.body
    given_ = given(body.burn_rules)
    rules = DEFAULT_RULES if given_ is None else [_rule(each) for each in given_]
    async with ask.context.pool.transaction("put_burn_alerting") as tx:
        target = await put_burn_alerting(
            tx,
            ask.who,
            ask.ids["projectID"],
            ask.ids["serviceID"],
            body.window,
            rules,
            enabled=body.burn_alert_enabled,
        )
        key = ServiceKey((target.org, target.owner))
        kept = (await select_rules_of_services(tx, [key])).get(key, {}).get(body.window, [])
    return ServiceBurnAlerting(
        window=body.window,
        burn_alert_enabled=target.burn_enabled,
        burn_rules=[rule_json(row.rule) for row in kept],
    )


def _rule(given_: BurnRuleDeclaration) -> BurnRule:
    return BurnRule(
        given_.long_window_seconds * SECOND,
        given_.short_window_seconds * SECOND,
        threshold_of(given_.threshold),
        BurnSeverity(given_.severity),
        given(given_.runbook_url) or "",
    )


def rule_json(rule: BurnRule) -> BurnRuleDeclaration:
    return BurnRuleDeclaration(
        long_window_seconds=rule.long_us // SECOND,
        short_window_seconds=rule.short_us // SECOND,
        threshold=float(rule.threshold),
        severity=rule.severity.value,
        runbook_url=known(rule.runbook_url or None),
    )


_VIEW: Final = Permission(Need.VIEWER)
_SERVICE: Final = ("service", "serviceID")

ROUTES: Final = (
    Route(
        method="GET",
        path=f"{_ONE}/alerting",
        action=_VIEW,
        scope=_SERVICE,
        handler=read,
        summary="Read the alerting policy of a service.",
        tag="service_alerting",
        answer=ServiceAlerting,
    ),
    Route(
        method="GET",
        path=f"{_ONE}/alerting/state",
        action=_VIEW,
        scope=_SERVICE,
        handler=read_state,
        summary="Read whether the service is armed to page, with the reasons otherwise.",
        tag="service_alerting",
        answer=ServiceAlertingState,
    ),
    Route(
        method="PATCH",
        path=f"{_ONE}/alerting",
        action=EDIT,
        scope=_SERVICE,
        handler=edit,
        summary="Change the alerting policy of a service.",
        tag="service_alerting",
        body=PatchServiceAlertingRequest,
        answer=ServiceAlerting,
        also=(409,),
    ),
    Route(
        method="PUT",
        path=f"{_ONE}/sla-target/burn-alerting",
        action=EDIT,
        scope=_SERVICE,
        handler=write_burn_alerting,
        summary="Set burn alerting and its burn rules.",
        tag="service_alerting",
        body=SetServiceBurnAlertingRequest,
        answer=ServiceBurnAlerting,
        also=(409,),
    ),
)
