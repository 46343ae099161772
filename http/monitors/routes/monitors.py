"""Routes of monitors: read, write, run now and push token."""

from collections.abc import Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec
import trio
from msgspec import UNSET

from ....probes.check.result import RunOutcome
from ....storage.accounts.rules.access import Need, Permission, may_see_secrets_of_a_monitor
from ....storage.alerting.queries.alerting_state import (
    Delegation,
    SignalDelegation,
    select_delegations,
)
from ....storage.alerting.queries.flapping import select_flapping
from ....storage.alerting.queries.open_warnings import NO_WARNINGS, OpenWarnings, select_warnings
from ....storage.alerting.rules.paging_delegation import SignalReason
from ....storage.core.instant import LATEST, Instant, to_text
from ....storage.core.refusal import Refused
from ....storage.engine.keyring import CannotOpen, Keyring
from ....storage.engine.lock_refusal import refused_when_locked
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.certificates import MonitorCertificate, select_certificates
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ....storage.monitors.queries.monitors import (
    MonitorStatusRow,
    next_due_of,
    select_monitor,
    select_standings,
    select_uids,
    status_of,
    still_troubled,
)
from ....storage.monitors.queries.probe_errors import select_probe_errors
from ....storage.monitors.rows import MonitorRow, ProbeErrorReason, ProbeErrorRow
from ....storage.monitors.rules.fields import FIELDS
from ....storage.monitors.rules.monitor import MonitorDraft, MonitorType
from ....storage.monitors.rules.monitor_defaults import MonitorDefaults, completed
from ....storage.monitors.transactions.config_secrets import decrypt, readable
from ....storage.monitors.transactions.create_monitor import push_token_place
from ....storage.monitors.transactions.edit_monitor import EDIT
from ....storage.monitors.transactions.run_now import renew_push_token, run_now
from ....storage.oncall.queries.escalation_policies import select_policy_uids
from ....storage.regional.queries import RegionalPart, select_regional_parts
from ....storage.regional.rules import RegionSpread
from ....storage.regional.transactions import create_any, delete_any, edit_any
from ....storage.scheduling.queries.region_list import select_usable_regions
from ...wire.errors import Problem
from ...wire.route import Request, Response, Route
from ...wire.schema import instant_text, known
from ...wire.scope_keys import org_of
from ..schemas.monitors import (
    CheckRequested,
    CreateMonitor,
    Monitor,
    MonitorDelegation,
    MonitorManagement,
    MonitorSignalDelegation,
    OwningService,
    TestMonitor,
    TestResult,
    UpdateMonitor,
)
from ..schemas.push import PushToken
from .check_test import TEST_SECONDS, test_check

# Monitors that are read together, and those whose JSON is made before other tasks get a turn.
SHOWN_AT_ONCE: Final = 1_000
SHOWN_A_TURN: Final = 100
_OF_SPREAD: Final = ("regions", "down_regions")
PUSH_PATH: Final = "/api/v1/public/push/"


async def show_monitor(ask: Request) -> Monitor:
    async with ask.context.pool.transaction("show_monitor", read_only=True) as tx:
        row = await select_monitor(tx, ask.ids["monitorID"])
        if row is None:
            raise Refused("not_found")
        return (await monitors_json(ask, tx, [row]))[0]


async def create(ask: Request) -> Response:
    context = ask.context
    with refused_when_locked():
        async with context.pool.transaction("create_monitor") as tx:
            draft = draft_of(ask.body, await monitor_defaults_in_force(tx))
            row = await create_any(
                tx,
                ask.who,
                ask.ids["projectID"],
                draft,
                _spread_of(ask.body),
                context.keyring,
                await usable_regions(ask, tx),
            )
            shape = (await monitors_json(ask, tx, [row]))[0]
    context.on_edit()
    return Response(body=shape, headers={"Location": f"/api/v1/monitors/{row.uid}"})


async def update(ask: Request) -> Monitor:
    context = ask.context
    given = {
        name: value
        for name, value in msgspec.structs.asdict(ask.body).items()
        if value is not msgspec.UNSET and name not in _OF_SPREAD
    }

    async def edit(tx: Tx) -> tuple[Sequence[MonitorRow], Monitor]:
        rows = await edit_any(
            tx,
            ask.who,
            ask.ids["monitorID"],
            given,
            _spread_of(ask.body),
            context.keyring,
            await usable_regions(ask, tx),
        )
        return rows, (await monitors_json(ask, tx, rows[:1]))[0]

    # `transact` repeats the edit after a conflict, as a composite can be evaluated during it.
    rows, shape = await context.pool.transact("edit_monitor", edit)
    for row in rows:
        context.recorder.forget(row.key)
    context.on_edit()
    return shape


async def usable_regions(ask: Request, tx: Tx) -> frozenset[str]:
    """Returns the regions that the monitors of the scope's organization may use."""
    options = ask.context.options
    return await select_usable_regions(tx, org_of(ask), options.regions, options.reserved)


async def delete(ask: Request) -> None:
    context = ask.context
    rows = await context.pool.transact(
        "delete_monitor", lambda tx: delete_any(tx, ask.who, ask.ids["monitorID"])
    )
    for row in rows:
        context.recorder.forget(row.key)


async def test(ask: Request) -> TestResult:
    """Runs a check once in its region, without storing it."""
    async with ask.context.pool.transaction("read_monitor_defaults", read_only=True) as tx:
        draft = draft_of(ask.body, await monitor_defaults_in_force(tx))
    if ask.body.regions:
        draft = msgspec.structs.replace(draft, region=ask.body.regions[0])
    if draft.type in (MonitorType.PUSH, MonitorType.COMPOSITE):
        raise Problem(f"type: {draft.type} cannot be tested")
    assert ask.scope is not None
    result = await test_check(ask.context, draft, ask.scope)
    return TestResult(
        up=result.outcome is RunOutcome.UP,
        latency_ms=result.latency_ms,
        code=known(result.code),
        msg=result.msg,
        reason=known(None if result.unknown_reason is None else result.unknown_reason.value),
        conditions=[result.failed.text] if result.failed else msgspec.UNSET,
    )


async def check_now(ask: Request) -> CheckRequested:
    context = ask.context
    async with context.pool.transaction("run_now") as tx:
        asked = await run_now(tx, ask.who, ask.ids["monitorID"])
    if asked.type == MonitorType.COMPOSITE:
        # A composite needs no run: the states of its children are stored.
        await context.evaluate_composite(asked.key)
    context.on_edit()
    return CheckRequested(job_id=asked.job)


async def new_push_token(ask: Request) -> PushToken:
    async with ask.context.pool.transaction("renew_push_token") as tx:
        token = await renew_push_token(tx, ask.who, ask.ids["monitorID"], ask.context.keyring)
    # This process forgets the old token immediately. Other processes accept it for up to 0.9 s.
    ask.context.push_targets.clear()
    return PushToken(push_token=token, push_url=push_url(ask, token))


def draft_of(body: CreateMonitor, defaults: MonitorDefaults) -> MonitorDraft:
    """Returns the draft of a request, with defaults for absent fields."""
    given = {
        name: value
        for name, value in msgspec.structs.asdict(body).items()
        if value is not msgspec.UNSET and name not in _OF_SPREAD
    }
    given["type"] = kind = str(given["type"])
    return MonitorDraft(**completed(given, kind, defaults))


def _spread_of(body: CreateMonitor | UpdateMonitor) -> RegionSpread:
    regions = None if body.regions is msgspec.UNSET else body.regions
    down = None if body.down_regions is msgspec.UNSET else body.down_regions
    return RegionSpread(regions, down)


def push_url(ask: Request, token: str) -> str:
    return f"{ask.base_url}{PUSH_PATH}{token}"


def may_see_secrets(ask: Request) -> bool:
    """Returns whether the caller sees the push tokens and documents of the scope's monitors."""
    return ask.scope is not None and may_see_secrets_of_a_monitor(ask.who, ask.scope)


class ShownMonitor(NamedTuple):
    """JSON of a monitor for the caller, and the row of its status.

    The certificate can change at `until` without a write.
    """

    json: Monitor
    standing: MonitorStatusRow | None
    until: Instant


async def monitors_json(ask: Request, tx: Tx, rows: Sequence[MonitorRow]) -> list[Monitor]:
    """Returns the monitors as the caller may see them. All rows are of one organization."""
    return [one.json for one in await shown_monitors(ask, tx, rows)]


async def shown_monitors(ask: Request, tx: Tx, rows: Sequence[MonitorRow]) -> list[ShownMonitor]:
    """Returns JSON of the monitors. Many are read in parts, so that other tasks get their turn."""
    shown: list[ShownMonitor] = []
    for first in range(0, len(rows), SHOWN_AT_ONCE):
        shown += await _shown(ask, tx, rows[first : first + SHOWN_AT_ONCE])
    return shown


async def _shown(ask: Request, tx: Tx, rows: Sequence[MonitorRow]) -> list[ShownMonitor]:
    keys = [row.key for row in rows]
    standings = await select_standings(tx, keys)
    wanted = sorted({key for row in rows for key in row.depends_on})
    uids = await select_uids(tx, rows[0].org, wanted) if wanted else {}
    climbed = {row.escalation_policy for row in rows if row.escalation_policy is not None}
    policies = await select_policy_uids(tx, rows[0].org, climbed) if climbed else {}
    may_write = may_see_secrets(ask)
    troubles = await select_probe_errors(tx, keys)
    delegations = await select_delegations(tx, keys, tx.now)
    flapping = await select_flapping(tx, keys)
    warnings = await select_warnings(tx, keys)
    certificates = await select_certificates(tx, keys)
    regional = await select_regional_parts(tx, rows)
    shown = []
    for n, (row, key) in enumerate(zip(rows, keys, strict=True)):
        if n % SHOWN_A_TURN == SHOWN_A_TURN - 1:
            await trio.lowlevel.checkpoint()
        standing, certificate = standings.get(key), certificates.get(key)
        json = _monitor_json(
            ask,
            row,
            standing,
            troubles.get(key),
            uids,
            policies.get(row.escalation_policy or 0),
            delegations[key],
            flapping.get(key),
            warnings.get(key, NO_WARNINGS),
            certificate,
            regional.get(row.id, _ALONE),
            tx.now,
            may_write=may_write,
        )
        shown.append(ShownMonitor(json, standing, certificate.until if certificate else LATEST))
    return shown


_ALONE: Final = RegionalPart()
_fields_of: Final = attrgetter(*FIELDS)


def _monitor_json(
    ask: Request,
    row: MonitorRow,
    standing: MonitorStatusRow | None,
    trouble: ProbeErrorRow | None,
    uids: dict[int, Any],
    policy: UUID | None,
    delegation: Delegation,
    flapping_since: Instant | None,
    warnings: OpenWarnings,
    certificate: MonitorCertificate | None,
    regional: RegionalPart,
    now: Instant,
    *,
    may_write: bool,
) -> Monitor:
    token = push_token_of(ask, row) if may_write else None
    trouble = still_troubled(trouble, standing)
    return Monitor(
        **dict(zip(FIELDS, _fields_of(row), strict=True)),
        id=row.uid,
        project_id=row.project_uid,
        slug=row.slug,
        type=MonitorType(row.type),
        regions=known(regional.regions or None),
        down_regions=known(regional.down_regions or None),
        regional_monitor_id=known(regional.whole),
        depends_on=[uids[key] for key in row.depends_on if key in uids],
        flapping_since=instant_text(flapping_since),
        slow_since=instant_text(warnings.slow),
        certificate_warning_since=instant_text(warnings.certificate),
        certificate_expires_at=instant_text(certificate.ends_at if certificate else None),
        certificate_seen_at=instant_text(certificate.seen_at if certificate else None),
        certificate_unknown_reason=known(certificate.unknown if certificate else None),
        consecutive_failures=standing.failures_in_row if standing else 0,
        config=visible_config(row, ask.context.keyring, may_write=may_write),
        escalation_policy_id=known(policy),
        status=status_of(standing, row.type, now).value,
        next_due_at=instant_text(next_due_of(standing, now)),
        push_token=known(token),
        push_url=known(push_url(ask, token) if token else None),
        last_probe_error_reason=known(ProbeErrorReason(trouble.reason) if trouble else None),
        last_probe_error_at=instant_text(trouble.at if trouble else None),
        management=_management(row),
        delegation=_delegation(delegation),
        superseded_by_service_id=known(row.superseded_by_uid),
        retired_at=instant_text(row.retired_at),
        created_at=to_text(row.created_at),
        updated_at=to_text(row.updated_at),
    )


_BY_USERS: Final = MonitorManagement(source="ui", read_only=False)


def _management(row: MonitorRow) -> MonitorManagement:
    if not row.managed_by:
        return _BY_USERS
    return MonitorManagement(
        source="file",
        provider=row.managed_by,
        uid=known(row.bundle_uid),
        path=known(row.bundle_path or None),
        read_only=row.orphaned_at is None,
    )


def _delegation(delegation: Delegation) -> MonitorDelegation:
    return MonitorDelegation(live=_signal(delegation.live), burn=_signal(delegation.burn))


@lru_cache(maxsize=8)
def _ownerless(delegated: bool, reason: SignalReason | None) -> MonitorSignalDelegation:
    return MonitorSignalDelegation(delegated=delegated, owners=UNSET, reason=known(reason))


def _signal(signal: SignalDelegation) -> MonitorSignalDelegation:
    if not signal.owners:
        return _ownerless(signal.delegated, signal.reason)
    owners = [OwningService(id=one.uid, slug=one.slug, name=one.name) for one in signal.owners]
    return MonitorSignalDelegation(
        delegated=signal.delegated,
        owners=owners,
        reason=known(signal.reason),
    )


def visible_config(row: MonitorRow, keyring: Keyring, *, may_write: bool) -> dict[str, Any]:
    """Returns the config without secrets. Only writers also get the documents.

    Viewers do not see whether a document exists.
    """
    if row.config == "{}":
        return {}
    config: dict[str, Any] = msgspec.json.decode(row.config)
    if may_write:
        return readable(row.type, config, partial(_unsealed, row, keyring))
    plain = {name: value for name, value in config.items() if value != ""}
    headers = plain.get("headers")
    if isinstance(headers, dict):
        plain["headers"] = {name: value for name, value in headers.items() if value != ""}
    return plain


def _unsealed(row: MonitorRow, keyring: Keyring) -> dict[str, Any]:
    """Returns the decrypted settings, empty if the keyring cannot decrypt them.

    The document is then empty text, like every other secret.
    """
    try:
        return decrypt(keyring, row.config_ciphertext, row.uid)
    except CannotOpen:
        return {}


def push_token_of(ask: Request, row: MonitorRow) -> str | None:
    """Returns the push token for users who may write the monitor.

    Returns: None, if the monitor has no token or the keyring cannot decrypt it.
    """
    if row.push_token_ciphertext is None:
        return None
    try:
        opened = ask.context.keyring.open(row.push_token_ciphertext, push_token_place(row.uid))
    except CannotOpen:
        return None
    return opened.decode()


_VIEW: Final = Permission(Need.VIEWER)
_PROJECT: Final = ("project", "projectID")
_MONITOR: Final = ("monitor", "monitorID")

ROUTES: Final = (
    Route(
        method="POST",
        path="/api/v1/projects/{projectID}/monitors",
        action=EDIT,
        scope=_PROJECT,
        handler=create,
        summary="Create a monitor.",
        tag="monitors",
        body=CreateMonitor,
        answer=Monitor,
        status=201,
        also=(409,),
    ),
    Route(
        method="POST",
        path="/api/v1/projects/{projectID}/monitors/test",
        action=EDIT,
        scope=_PROJECT,
        handler=test,
        summary="Run a check once, without storing anything.",
        tag="monitors",
        body=TestMonitor,
        answer=TestResult,
        answer_seconds=TEST_SECONDS,
    ),
    Route(
        method="GET",
        path="/api/v1/monitors/{monitorID}",
        action=_VIEW,
        scope=_MONITOR,
        handler=show_monitor,
        summary="One monitor.",
        tag="monitors",
        answer=Monitor,
        short=True,
    ),
    Route(
        method="PATCH",
        path="/api/v1/monitors/{monitorID}",
        action=EDIT,
        scope=_MONITOR,
        handler=update,
        summary="Change the given fields of a monitor.",
        tag="monitors",
        body=UpdateMonitor,
        answer=Monitor,
        also=(409,),
    ),
    Route(
        method="DELETE",
        path="/api/v1/monitors/{monitorID}",
        action=EDIT,
        scope=_MONITOR,
        handler=delete,
        summary="Delete a monitor.",
        tag="monitors",
        status=204,
        also=(409,),
    ),
    Route(
        method="POST",
        path="/api/v1/monitors/{monitorID}/check",
        action=EDIT,
        scope=_MONITOR,
        handler=check_now,
        summary="Queue an extra run now.",
        tag="monitors",
        answer=CheckRequested,
        status=202,
        also=(400, 409),
    ),
    Route(
        method="POST",
        path="/api/v1/monitors/{monitorID}/push-token",
        action=EDIT,
        scope=_MONITOR,
        handler=new_push_token,
        summary="Renew the token of a push monitor; the old one becomes invalid.",
        tag="monitors",
        answer=PushToken,
        status=201,
        also=(400,),
    ),
)
