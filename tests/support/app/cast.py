"""A fixed cast of principals on a real database behind the real app.

Acme has two projects, shop and mill; Other is another tenant. Every member has a role in all of
Acme, except the neighbour, who is only in mill, the shopkeeper, who is only in shop, and the
stranger, who is in Other.
"""

import json
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any
from uuid import UUID

import trio
from quart import Response
from quart.typing import TestClientProtocol
from uuid_utils.compat import uuid7

from leadline.daemon.loops.composite_evaluator import CompositeEvaluator
from leadline.daemon.loops.result_recorder import Recorder
from leadline.daemon.runtime import limits
from leadline.http.auth.passwords import Passwords
from leadline.http.server.app import make_app
from leadline.http.server.route_table import ROUTES
from leadline.http.wire.agent_credential import configured_agents
from leadline.http.wire.app_context import AppContext
from leadline.http.wire.options import HttpOptions
from leadline.probes.net.egress import make_reach
from leadline.probes.net.egress_policy import notify_policy, probe_policy
from leadline.probes.senders.send_result import SendContext
from leadline.probes.senders.webhook import secret_from
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables import api_tokens as tokens
from leadline.storage.accounts.tables import projects, sessions, users
from leadline.storage.accounts.tables.group_roles import insert_group_role
from leadline.storage.accounts.tables.invitations import put_invitation
from leadline.storage.accounts.tables.operations import PROJECT_DELETE, insert_operation
from leadline.storage.agents.tables.agent_tokens import insert_agent_token
from leadline.storage.changes.rules.change import ChangeKind, ChangePhaseName, Record
from leadline.storage.changes.transactions import record_change
from leadline.storage.core.instant import DAY, HOUR, Instant
from leadline.storage.core.key import MonitorKey
from leadline.storage.core.token import RANDOM_BYTES, TokenKind, digest, token_from
from leadline.storage.engine.keyring import Keyring
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.engine.pools import Pool, Tx, open_pool
from leadline.storage.gate.queries.gate_policies import select_governing
from leadline.storage.gate.rules.gate import GateClause, GateClauseAssignment, UnknownBehavior
from leadline.storage.gate.rules.gate_policy import Document, WindowMode
from leadline.storage.gate.transactions.edit_gate_overrides import (
    create_override as create_gate_override,
)
from leadline.storage.gate.transactions.edit_policy import put_policy
from leadline.storage.gate.transactions.evaluate_gate import evaluate_gate
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.incidents.rules.incident_template import TemplateDraft
from leadline.storage.incidents.transactions.edit_incident_templates import create_template
from leadline.storage.incidents.transactions.edit_incidents import (
    IncidentDraft,
    add_update,
    create_incident,
    put_postmortem,
)
from leadline.storage.maintenance.rules import Recurrence
from leadline.storage.maintenance.transactions.extend_series import SeriesPlan, begin_series
from leadline.storage.maintenance.transactions.plan_maintenance import Plan, announce
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.transactions.attach_channel import attach_channel
from leadline.storage.monitors.transactions.create_monitor import create_monitor
from leadline.storage.monitors.transactions.edit_secrets import create_secret
from leadline.storage.mutes.transactions import MuteDraft, create_mute
from leadline.storage.notifications.rules.notification import Notification, Topic
from leadline.storage.notifications.tables import contact_methods
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.notifications.transactions.edit_webhooks import create_webhook
from leadline.storage.notifications.transactions.enqueue_notifications import enqueue_pages
from leadline.storage.objectives.transactions.set_monitor_objective import aim_for_project
from leadline.storage.objectives.transactions.set_service_objective import put_target
from leadline.storage.oncall.queries.cover_requests import select_cover_request
from leadline.storage.oncall.rules.cover import Cover, CoverSpan
from leadline.storage.oncall.rules.escalation import TargetKind
from leadline.storage.oncall.tables.cover_requests import accept_cover_request, insert_cover_request
from leadline.storage.oncall.tables.oncall_schedules import lock_schedule
from leadline.storage.oncall.transactions.edit_escalation_policies import (
    PolicyDraft,
    StepDraft,
    create_policy,
)
from leadline.storage.oncall.transactions.edit_overrides import create_override
from leadline.storage.oncall.transactions.edit_schedules import ScheduleDraft, create_schedule
from leadline.storage.results.event_bus import Bus
from leadline.storage.services.tables.services import select_service
from leadline.storage.services.transactions.create_service import ServiceDraft, create_service
from leadline.storage.status_pages.queries.status_page_subscribers import select_subscribers
from leadline.storage.status_pages.queries.status_pages import select_page
from leadline.storage.status_pages.rules.status_page import ComponentStatus as PageStatus
from leadline.storage.status_pages.rules.status_page_edit import (
    BindingTarget,
    ComponentDraft,
    PageDraft,
)
from leadline.storage.status_pages.rules.subscription import SubscriberKind, SubscriptionRequest
from leadline.storage.status_pages.transactions.edit_components import create_component
from leadline.storage.status_pages.transactions.edit_pages import create_page
from leadline.storage.status_pages.transactions.subscribe import subscribe
from tests.conftest import FROZEN_NOW

COOKIE = "leadline_session"
AGENT_TOKEN = "catch-all-token-of-the-cast"
# name → (tenant, project, role), None for no membership; a global admin needs none.
PEOPLE: dict[str, tuple[str, str | None, Role] | None] = {
    "stranger": ("other", None, Role.ORG_ADMIN),
    "neighbour": ("acme", "mill", Role.PROJECT_ADMIN),
    "shopkeeper": ("acme", "shop", Role.PROJECT_ADMIN),
    "viewer": ("acme", None, Role.VIEWER),
    "editor": ("acme", None, Role.EDITOR),
    "project_admin": ("acme", None, Role.PROJECT_ADMIN),
    "org_admin": ("acme", None, Role.ORG_ADMIN),
    "global_admin": None,
}
# name → (tenant, project, role, actions).
TOKENS: dict[str, tuple[str, str | None, Role, list[str] | None]] = {
    "token": ("acme", None, Role.ORG_ADMIN, None),
    "viewer_token": ("acme", None, Role.VIEWER, None),
    "shop_token": ("acme", "shop", Role.EDITOR, None),
    "gate_token": ("acme", None, Role.ORG_ADMIN, ["gate:evaluate"]),
    "change_token": ("acme", None, Role.ORG_ADMIN, ["change:record"]),
    "pipeline_token": ("acme", None, Role.ORG_ADMIN, ["gate:evaluate", "change:record"]),
    "foreign_token": ("other", None, Role.ORG_ADMIN, None),
}
EVERYBODY = ["nobody", *PEOPLE, *TOKENS]


@dataclass(frozen=True)
class Cast:
    """The keys, ids and credentials of the principals that a cast template contains."""

    # Tenants by slug, projects as "acme/shop".
    orgs: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    projects: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    users: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    credentials: dict[str, dict[str, str]] = field(default_factory=lambda: {"nobody": {}})


# The cast of this process's template: `make_cast` fills it once, `open_api` copies it.
_cast = Cast()
# Tests that run by the real clock are later than FROZEN_NOW.
_CAST_SESSION_US = 3_650 * DAY
# Results and windows have one wide partition: these tests do not test partitioning.
_WIDE_PARTITION = """
create table {parent}_all partition of {parent}
for values from ('2025-11-01T00:00:00Z') to ('2026-03-01T00:00:00Z')
"""
# The partitions that most tests of the gate need: eight days from FROZEN_NOW.
_DECISION_DAYS = 8


@dataclass
class Api:
    pool: Pool
    context: AppContext
    client: TestClientProtocol
    # Tenants by slug, projects as "acme/shop".
    orgs: dict[str, tuple[int, UUID]]
    projects: dict[str, tuple[int, UUID]]
    users: dict[str, tuple[int, UUID]]
    credentials: dict[str, dict[str, str]]
    numbers: Any = field(default_factory=lambda: count(1))

    async def ask(
        self,
        who: str | dict[str, str],
        method: str,
        path: str,
        json: Any = None,
        *,
        headers: dict[str, str] | None = None,
        data: bytes | None = None,
        query: dict[str, Any] | None = None,
    ) -> Response:
        """Sends a request as one of the cast, or with the given headers."""
        credential = self.credentials[who] if isinstance(who, str) else who
        given: dict[str, Any] = {"headers": {**credential, **(headers or {})}}
        if json is not None:
            given["json"] = json
        if data is not None:
            given["data"] = data
        if query is not None:
            given["query_string"] = query
        response: Response = await self.client.open(path, method=method, **given)
        return response

    @property
    def org(self) -> UUID:
        return self.orgs["acme"][1]

    @property
    def project(self) -> UUID:
        return self.projects["acme/shop"][1]

    async def rows(self, query: str, **given: Any) -> list[tuple[Any, ...]]:
        async with self.pool.transaction("look", read_only=True) as tx:
            return await tx.rows(query, **given)

    async def new_user(self, name: str = "", password: str | None = None) -> UUID:
        uid = uuid7()
        async with self.pool.transaction("new_user") as tx:
            email = name or f"someone{next(self.numbers)}@example.com"
            await users.insert_user(tx, uid, email, "Someone", password, admin=False)
        return uid

    async def new_invitation(self) -> UUID:
        async with self.pool.transaction("new_invitation") as tx:
            org, email = self.orgs["acme"][0], f"invited{next(self.numbers)}@example.com"
            hashed = secrets.token_bytes(32)
            return await put_invitation(tx, org, uuid7(), None, email, Role.VIEWER, None, hashed)

    async def new_membership(self, role: Role = Role.VIEWER) -> UUID:
        person, uid = await self.new_user(), uuid7()
        async with self.pool.transaction("new_membership") as tx:
            row = await users.select_user(tx, person)
            assert row is not None
            await users.insert_membership(tx, self.orgs["acme"][0], uid, row.id, None, role)
        return uid

    async def new_session(self, who: str) -> tuple[UUID, str]:
        """Creates a session of a user of the cast. Returns its id and the value of the cookie."""
        async with self.pool.transaction("new_session") as tx:
            return await insert_session(tx, self.users[who][0])

    async def new_contact_method(
        self,
        who: str,
        kind: str = "webhook",
        *,
        verified: bool = True,
        label: str = "mobile",
        **config: str,
    ) -> UUID:
        uid = uuid7()
        key, _ = self.users[who]
        given = config or {"url": "http://127.0.0.1:1/"}
        async with self.pool.transaction("make_contact_method") as tx:
            await contact_methods.insert_method(
                tx,
                {
                    "uid": uid,
                    "user": key,
                    "kind": kind,
                    "label": label,
                    "config": json.dumps(given),
                    "sealed": None,
                },
            )
            if verified:
                (row,) = [
                    one for one in await contact_methods.select_methods(tx, key) if one.uid == uid
                ]
                await contact_methods.verify_method(tx, row.id)
                await contact_methods.refresh_channels(tx, key)
        return uid

    async def new_token(self) -> UUID:
        async with self.pool.transaction("new_token") as tx:
            uid, _ = await insert_token(tx, self.orgs["acme"][0], None, Role.VIEWER, None)
        return uid

    async def new_agent_token(self, region: str = "eu") -> UUID:
        uid, secret = uuid7(), secrets.token_bytes(RANDOM_BYTES)
        async with self.pool.transaction("new_agent_token") as tx:
            await insert_agent_token(tx, uid, "attic", region, secret, None)
        return uid

    async def new_secret(self, value: str = "hunter2", name: str = "") -> str:
        """Creates a secret in the shop and returns its name."""
        name = name or f"secret-{next(self.numbers)}"
        org = self.orgs["acme"][0]
        editor = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )
        async with self.pool.transaction("new_secret") as tx:
            await create_secret(tx, editor, self.project, name, value, self.context.keyring)
        return name

    async def new_dead_letter(self, title: str = "Shop is down") -> UUID:
        """Creates a dead letter: a page of the shop whose delivery was given up."""
        org, channel, uid = self.orgs["acme"][0], await self.new_channel(), uuid7()
        async with self.pool.transaction("new_dead_letter") as tx:
            key = await tx.value(
                "select id from notification_channels where uid = %(c)s", c=channel
            )
            page = Notification(
                event="incident.opened",
                status="down",
                severity="major",
                title=title,
                lines=(),
                why="",
                since=None,
                path="/incidents/1",
            )
            project = self.projects["acme/shop"][0]
            await enqueue_pages(tx, org, project, uid, uid, Topic.INCIDENT, [key], page)
            found: UUID = await tx.value(
                "update outbox set status = 'dead', attempts = 24, last_error = 'http_status 503' "
                "where stream = %(stream)s returning uid",
                stream=uid,
            )
        return found

    async def new_operation(self) -> UUID:
        """Creates a running deletion of a project of Acme that no process works on."""
        async with self.pool.transaction("new_operation") as tx:
            return await insert_operation(
                tx,
                PROJECT_DELETE,
                self.orgs["acme"][0],
                self.projects["acme/shop"][0],
                started_by=None,
                total=3,
            )

    async def new_channel(self, **given: Any) -> UUID:
        """Creates a channel in the shop, by default with a URL that the egress policy forbids."""
        values: dict[str, Any] = {
            "kind": "webhook",
            "name": f"c{next(self.numbers)}",
            "config": {"url": "http://127.0.0.1:1/"},
            "enabled": True,
            **given,
        }
        org = self.orgs["acme"][0]
        editor = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )
        async with self.pool.transaction("new_channel") as tx:
            row = await create_channel(
                tx, editor, self.project, keyring=self.context.keyring, **values
            )
        return row.uid

    async def new_policy(self, channel: UUID | None = None, schedule: UUID | None = None) -> UUID:
        """Creates an escalation policy with one step in the shop."""
        channel = channel or await self.new_channel()
        targets = [(TargetKind.CHANNEL, str(channel))]
        if schedule is not None:
            targets = [(TargetKind.SCHEDULE, str(schedule))]
        draft = PolicyDraft(f"p{next(self.numbers)}", [StepDraft(0, targets)])
        async with self.pool.transaction("new_policy") as tx:
            return (await create_policy(tx, self.editor, self.project, draft)).uid

    async def new_schedule(self, *channels: UUID, **given: Any) -> UUID:
        """Creates a weekly on-call schedule in the shop, which starts now."""
        people = [str(channel) for channel in channels] or [str(await self.new_channel())]
        values = {
            "name": f"s{next(self.numbers)}",
            "shift_seconds": 604_800,
            "anchor_at": self.context.clock(),
            "participants": people,
            **given,
        }
        async with self.pool.transaction("new_schedule") as tx:
            draft = ScheduleDraft(**values)
            return (await create_schedule(tx, self.editor, self.project, draft)).uid

    async def new_service(self, *, aims: bool = False, **given: Any) -> UUID:
        """Creates a service in the shop; with `aims` it has an objective of 99.9 % over 30 days."""
        draft = ServiceDraft(**{"name": f"service {next(self.numbers)}", **given})
        async with self.pool.transaction("new_service") as tx:
            uid = (await create_service(tx, self.editor, self.project, draft)).uid
            if aims:
                await put_target(tx, self.editor, self.project, uid, "30d", 99.9)
        return uid

    async def new_gate_policy(self, service: UUID | None = None) -> int:
        """Creates a policy of the service, or of the shop, in which every clause blocks. Returns
        its revision.
        """
        document = Document(
            schema_version=1,
            window_mode=WindowMode.ONE,
            window="30d",
            clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK),
            budget_consumed_percent=80,
            max_seal_lag_seconds=3_600,
            unknown_behavior=UnknownBehavior.BLOCK,
        )
        async with self.pool.transaction("new_gate_policy") as tx:
            row = await put_policy(tx, self.editor, self.project, service, None, document)
        return row.revision

    async def new_gate_override(self, service: UUID) -> UUID:
        """Creates an override for an hour. The service or the shop must have a policy."""
        org = self.orgs["acme"][0]
        admin = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.PROJECT_ADMIN),), label="admin"
        )
        async with self.pool.transaction("new_gate_override") as tx:
            row = await select_service(tx, service)
            assert row is not None
            policy = await select_governing(tx, row.org, row.project, row.id)
            assert policy is not None
            until = Instant(tx.now + HOUR)
            made = await create_gate_override(
                tx, admin, self.project, service, policy.revision, "It mends it.", until
            )
        return made.uid

    async def new_decision(self, service: UUID) -> UUID:
        """Asks the gate about a service now. The partition of the day must exist."""
        async with self.pool.transaction("new_decision") as tx:
            return (await evaluate_gate(tx, self.editor, self.project, service)).row.uid

    async def new_change(self, service: UUID, external_id: str = "1") -> UUID:
        """Records a completed change with the source "ci". Returns the id of its only phase."""
        told = Record(
            kind=ChangeKind.DEPLOY,
            phase=ChangePhaseName.SUCCEEDED,
            source="ci",
            external_id=external_id,
        )
        async with self.pool.transaction("new_change") as tx:
            made = await record_change(tx, self.editor, self.project, service, told)
        return made.phase.uid

    async def new_override(self) -> UUID:
        """Creates an override of one hour from now, of a new on-call schedule."""
        schedule, channel = await self.new_schedule(), str(await self.new_channel())
        now = self.context.clock()
        async with self.pool.transaction("new_override") as tx:
            row = await create_override(
                tx, self.editor, schedule, channel, now, Instant(now + HOUR)
            )
        return row.uid

    async def new_cover_request(self, *, accepted: bool = False) -> UUID:
        """Creates a cover request of a new on-call schedule for the next hour."""
        schedule = await self.new_schedule()
        ((channel,),) = await self.rows(
            "select channel from oncall_participants t join oncall_schedules s"
            " on s.org = t.org and s.id = t.schedule where s.uid = %(uid)s",
            uid=schedule,
        )
        now = self.context.clock()
        async with self.pool.transaction("new_cover_request") as tx:
            home = await lock_schedule(tx, schedule)
            assert home is not None, "the schedule exists"
            cover, uid = Cover(channel, None, CoverSpan(now, Instant(now + HOUR))), uuid7()
            await insert_cover_request(tx, home.org, home.id, uid, cover, "", "editor")
            if accepted:
                row = await select_cover_request(tx, uid)
                assert row is not None, "the request was inserted"
                await accept_cover_request(tx, row, channel)
        return uid

    async def aim_for_project(self) -> None:
        """Sets an objective of the shop over 30 days."""
        async with self.pool.transaction("set_project_objective") as tx:
            await aim_for_project(tx, self.editor, self.project, "30d", 99.0)

    async def new_maintenance(self) -> UUID:
        """Creates maintenance of the shop for the hour that begins one hour from now."""
        now = self.context.clock()
        plan = Plan(starts_at=Instant(now + HOUR), ends_at=Instant(now + 2 * HOUR))
        async with self.pool.transaction("new_maintenance") as tx:
            return (await announce(tx, self.editor, self.project, plan, None, 30)).uid

    async def new_series(self) -> UUID:
        """Creates daily maintenance of the shop at this time of day, from tomorrow on."""
        starts = Instant(self.context.clock() + DAY)
        plan = SeriesPlan(recurrence=Recurrence("FREQ=DAILY", starts, HOUR))
        async with self.pool.transaction("new_series") as tx:
            return (await begin_series(tx, self.editor, self.project, plan)).uid

    @property
    def editor(self) -> Principal:
        org = self.orgs["acme"][0]
        return Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )

    @property
    def admin(self) -> Principal:
        org = self.orgs["acme"][0]
        return Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.ORG_ADMIN),), label="admin"
        )

    async def new_status_page(self, **given: Any) -> UUID:
        """Creates a listed status page of the shop without components."""
        number = next(self.numbers)
        values = {"slug": f"page-{number}", "title": f"Page {number}", "project": self.project}
        draft = PageDraft(**{**values, **given})
        async with self.pool.transaction("new_status_page") as tx:
            row = await create_page(tx, self.admin, self.org, draft, self.context.keyring)
        return row.uid

    async def new_subscriber(self, page: UUID) -> UUID:
        """Creates an unconfirmed e-mail subscriber."""
        address = f"reader-{next(self.numbers)}@example.com"
        async with self.pool.transaction("new_subscriber") as tx:
            shown = await select_page(tx, page)
            assert shown is not None
            asked = SubscriptionRequest(kind=SubscriberKind.MAIL, address=address)
            await subscribe(tx, shown, asked, self.context.keyring)
            rows = await select_subscribers(tx, shown.org, shown.id)
        return next(row.uid for row in rows if row.address == address)

    async def new_component(
        self, page: UUID | None = None, *, name: str = "", group: str = "", **bound: Any
    ) -> UUID:
        """Creates a component of the page, or of a new page of the shop; it is manual unless a
        binding is given.
        """
        page = page or await self.new_status_page()
        target = BindingTarget(**(bound or {"manual_status": PageStatus.OPERATIONAL}))
        name = name or f"component {next(self.numbers)}"
        draft = ComponentDraft(name=name, target=target, group=group)
        async with self.pool.transaction("new_component") as tx:
            return (await create_component(tx, self.admin, page, draft)).uid

    async def new_webhook(self) -> UUID:
        uid = self.org
        secret = secret_from(b"s" * 32)
        async with self.pool.transaction("new_webhook") as tx:
            row = await create_webhook(
                tx,
                self.admin,
                uid,
                "http://127.0.0.1:1/",
                secret,
                None,
                self.context.keyring,
                enabled=True,
            )
        return row.uid

    async def new_incident(self, *, explained: bool = False, **given: Any) -> UUID:
        """Creates an incident in the shop. With `explained` it is resolved and has a postmortem."""
        org = self.orgs["acme"][0]
        editor = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )
        if explained:
            given["status"] = IncidentStatus.RESOLVED
        draft = IncidentDraft(**{"title": f"i{next(self.numbers)}", **given})
        async with self.pool.transaction("new_incident") as tx:
            row = await create_incident(tx, editor, self.project, draft)
        if explained:
            async with self.pool.transaction("explain") as tx:
                await put_postmortem(tx, editor, row.uid, "It was DNS.", None)
        return row.uid

    async def new_mute(self, **given: Any) -> UUID:
        """Creates a mute in the shop, of a tag for an hour."""
        async with self.pool.transaction("new_mute") as tx:
            until = Instant(tx.now + HOUR)
            draft = MuteDraft(
                **{"matchers": 'tag="db"', "reason": "known", "ends_at": until, **given}
            )
            return (await create_mute(tx, self.editor, self.project, draft)).uid

    async def new_group_role(self) -> UUID:
        uid, value = uuid7(), f"group {next(self.numbers)}"
        async with self.pool.transaction("group_role") as tx:
            place = (self.orgs["acme"][0], None)
            await insert_group_role(tx, uid, "https://id.test", "groups", value, place, "viewer")
        return uid

    async def new_incident_template(self, **given: Any) -> UUID:
        """Creates an incident template in the shop."""
        draft = TemplateDraft(
            **{"name": f"template {next(self.numbers)}", "title": "It fails", **given}
        )
        async with self.pool.transaction("new_incident_template") as tx:
            return (await create_template(tx, self.editor, self.project, draft)).uid

    async def new_public_update(self, incident: UUID) -> UUID:
        editor = Principal(
            CredentialKind.SESSION,
            (Membership(self.orgs["acme"][0], None, Role.EDITOR),),
            label="editor",
        )
        async with self.pool.transaction("new_update") as tx:
            _, row = await add_update(tx, editor, incident, None, "A message.", True)
        return row.uid

    async def attach(self, monitor: UUID, channel: UUID) -> None:
        org = self.orgs["acme"][0]
        editor = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )
        async with self.pool.transaction("attach") as tx:
            await attach_channel(tx, editor, monitor, channel)

    async def new_monitor(self, project: str = "acme/shop", **given: Any) -> MonitorRow:
        org = self.orgs[project.partition("/")[0]][0]
        editor = Principal(
            CredentialKind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor"
        )
        values = {
            "name": f"m{next(self.numbers)}",
            "type": "http",
            "target": "http://127.0.0.1:1/",
            **given,
        }
        async with self.pool.transaction("new_monitor") as tx:
            return await create_monitor(
                tx,
                editor,
                self.projects[project][1],
                MonitorDraft(**values),
                self.context.keyring,
                self.context.options.regions,
            )


@asynccontextmanager
async def open_api(
    pool: Pool, now: Instant, passwords: Passwords, **parts: Any
) -> AsyncIterator[Api]:
    """Opens the app with its recorder running, on a clone of the cast template. `parts` are set in
    the context.
    """
    bus = parts.get("bus") or Bus()
    clock = parts.get("clock") or (lambda: now)
    recorder = parts.get("recorder") or Recorder(pool, bus, clock)
    reach = make_reach(probe_policy(), nameservers=())

    async def evaluate_composite(key: MonitorKey) -> None:
        await CompositeEvaluator(pool, bus).evaluate(clock(), (), [key])

    usual = AppContext(
        pool=pool,
        clock=clock,
        recorder=recorder,
        evaluate_composite=evaluate_composite,
        bus=bus,
        keyring=Keyring(b"k" * 32),
        reach=reach,
        means=SendContext(reach=replace(reach, policy=notify_policy()), now=lambda: now),
        passwords=passwords,
        options=HttpOptions(
            version="0.3.8",
            regions=frozenset({"core", "eu"}),
            agents=configured_agents(AGENT_TOKEN),
            has_agents=True,
        ),
        requests=limits.serving(),
        large_requests=limits.receiving_large(),
        test_permits=trio.CapacityLimiter(4),
        readers=trio.CapacityLimiter(1),
    )
    context = replace(usual, **parts)
    app = make_app(context, ROUTES)
    api = Api(
        pool,
        context,
        app.test_client(use_cookies=False),
        dict(_cast.orgs),
        dict(_cast.projects),
        dict(_cast.users),
        dict(_cast.credentials),
    )
    async with trio.open_nursery() as nursery:
        await nursery.start(recorder.run)
        nursery.start_soon(reach.lag.watch)
        yield api
        nursery.cancel_scope.cancel()


async def make_cast(dsn: str) -> None:
    """Inserts the cast into a migrated database, which becomes the template of a test process.

    Called once per process. Closes its connections, because PostgreSQL cannot clone a database that
    has one.
    """
    async with open_pool(dsn, name="cast", size=1, clock=lambda: FROZEN_NOW) as pool:
        async with pool.transaction("cast") as tx:
            await _make_places(tx, _cast)
            await _make_people(tx, _cast)
            for parent in ("heartbeats", "expected_runs"):
                await tx.execute(_WIDE_PARTITION.format(parent=parent))
        through = Instant(FROZEN_NOW + (_DECISION_DAYS - 1) * DAY)
        await make_partitions(
            pool, "gate_decisions", "evaluated_at", from_=FROZEN_NOW, through=through
        )


async def _make_places(tx: Tx, cast: Cast) -> None:
    for slug in ("acme", "other"):
        uid = uuid7()
        org = await projects.insert_organization(tx, uid, slug, slug.title())
        assert org is not None
        cast.orgs[slug] = org, uid
        for name in ("shop", "mill"):
            uid = uuid7()
            project = await projects.insert_project(tx, org, uid, name, f"{slug} {name}")
            assert project is not None
            cast.projects[f"{slug}/{name}"] = project, uid


async def _make_people(tx: Tx, cast: Cast) -> None:
    for name, place in PEOPLE.items():
        uid = uuid7()
        key = await users.insert_user(
            tx, uid, f"{name}@example.com", name, None, admin=name == "global_admin"
        )
        assert key is not None
        cast.users[name] = key, uid
        if place is not None:
            org, project, role = _place(cast, place[0], place[1], place[2])
            await users.insert_membership(tx, org, uuid7(), key, project, role)
        _, secret = await insert_session(tx, key, _CAST_SESSION_US)
        cast.credentials[name] = {"Cookie": f"{COOKIE}={secret}"}
    cast.credentials["agent"] = {"Authorization": f"Bearer {AGENT_TOKEN}"}
    for name, (tenant, project_name, role, actions) in TOKENS.items():
        org, project, _ = _place(cast, tenant, project_name, role)
        _, token = await insert_token(tx, org, project, role, actions)
        cast.credentials[name] = {"Authorization": f"Bearer {token}"}


def _place(
    cast: Cast, tenant: str, project: str | None, role: Role
) -> tuple[int, int | None, Role]:
    key = cast.projects[f"{tenant}/{project}"][0] if project else None
    return cast.orgs[tenant][0], key, role


async def insert_session(tx: Tx, user: int, lasts_us: int = HOUR) -> tuple[UUID, str]:
    uid, secret = uuid7(), secrets.token_urlsafe(32)
    expires = Instant(tx.now + lasts_us)
    await sessions.insert_session(tx, digest(secret), uid, user, "a test", expires)
    return uid, secret


async def insert_token(
    tx: Tx, org: int, project: int | None, role: Role, actions: list[str] | None
) -> tuple[UUID, str]:
    uid, token = uuid7(), token_from(TokenKind.API, secrets.token_bytes(RANDOM_BYTES))
    await tokens.insert_token(
        tx, org, uid, project, "t", role, actions, digest(token), None, token[:13], None
    )
    return uid, token
