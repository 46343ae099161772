"""A fixed cast on a real database behind the real app: who asks, and what they may ask for.

Acme has two projects, shop and mill; Other is another tenant. Everybody has a role in all of Acme,
but for the neighbour, who is in mill only, the shopkeeper, in shop only, and the stranger.
"""

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

from leadline.http.app import make_app
from leadline.http.auth.passwords import Passwords
from leadline.http.context import Context, Options
from leadline.http.table import ROUTES
from leadline.probes.reach.outward import make_reach
from leadline.probes.reach.policy import notify_policy, probe_policy
from leadline.probes.senders import Means
from leadline.probes.senders.webhook import secret_from
from leadline.storage.bus import Bus
from leadline.storage.keyring import Keyring
from leadline.storage.pools import Pool, Tx
from leadline.storage.recorder import Recorder
from leadline.storage.rules.access import Kind, Membership, Principal, Role
from leadline.storage.rules.instant import HOUR, Instant
from leadline.storage.rules.token import RANDOM_BYTES, TokenKind, digest, token_from
from leadline.storage.tables import projects, sessions, tokens, users
from leadline.storage.tables.monitors import MonitorRow
from leadline.storage.transactions.monitors.create_monitor import create_monitor
from leadline.storage.transactions.monitors.draft import MonitorDraft
from leadline.storage.transactions.notifications.edit_channels import attach_channel, create_channel
from leadline.storage.transactions.notifications.edit_webhooks import create_webhook
from leadline.storage.transactions.secrets.edit_secrets import create_secret

COOKIE = "leadline_session"
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


@dataclass
class Api:
    pool: Pool
    context: Context
    client: TestClientProtocol
    # Tenants by slug, projects as "acme/shop".
    orgs: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    projects: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    users: dict[str, tuple[int, UUID]] = field(default_factory=dict)
    credentials: dict[str, dict[str, str]] = field(default_factory=lambda: {"nobody": {}})
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
        """As one of the cast, or with headers of one's own."""
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

    async def new_membership(self, role: Role = Role.VIEWER) -> UUID:
        person, uid = await self.new_user(), uuid7()
        async with self.pool.transaction("new_membership") as tx:
            row = await users.select_user(tx, person)
            assert row is not None
            await users.insert_membership(tx, self.orgs["acme"][0], uid, row.id, None, role)
        return uid

    async def new_session(self, who: str) -> tuple[UUID, str]:
        """Of one of the cast: its id and what the cookie holds."""
        async with self.pool.transaction("new_session") as tx:
            return await insert_session(tx, self.users[who][0])

    async def new_token(self) -> UUID:
        async with self.pool.transaction("new_token") as tx:
            uid, _ = await insert_token(tx, self.orgs["acme"][0], None, Role.VIEWER, None)
        return uid

    async def new_secret(self, value: str = "hunter2", name: str = "") -> str:
        """Of the shop, by its name."""
        name = name or f"secret-{next(self.numbers)}"
        org = self.orgs["acme"][0]
        editor = Principal(Kind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor")
        async with self.pool.transaction("new_secret") as tx:
            await create_secret(tx, editor, self.project, name, value, self.context.keyring)
        return name

    async def new_channel(self, **given: Any) -> UUID:
        """A channel of the shop's, by default one that leads to where no channel may."""
        values: dict[str, Any] = {
            "kind": "webhook",
            "name": f"c{next(self.numbers)}",
            "config": {"url": "http://127.0.0.1:1/"},
            "enabled": True,
            **given,
        }
        org = self.orgs["acme"][0]
        editor = Principal(Kind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor")
        async with self.pool.transaction("new_channel") as tx:
            row = await create_channel(
                tx, editor, self.project, keyring=self.context.keyring, **values
            )
        return row.uid

    async def new_webhook(self) -> UUID:
        org, uid = self.orgs["acme"]
        admin = Principal(Kind.SESSION, (Membership(org, None, Role.ORG_ADMIN),), label="admin")
        secret = secret_from(b"s" * 32)
        async with self.pool.transaction("new_webhook") as tx:
            row = await create_webhook(
                tx,
                admin,
                uid,
                "http://127.0.0.1:1/",
                secret,
                None,
                self.context.keyring,
                enabled=True,
            )
        return row.uid

    async def attach(self, monitor: UUID, channel: UUID) -> None:
        org = self.orgs["acme"][0]
        editor = Principal(Kind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor")
        async with self.pool.transaction("attach") as tx:
            await attach_channel(tx, editor, monitor, channel)

    async def new_monitor(self, project: str = "acme/shop", **given: Any) -> MonitorRow:
        org = self.orgs[project.partition("/")[0]][0]
        editor = Principal(Kind.SESSION, (Membership(org, None, Role.EDITOR),), label="editor")
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
async def open_api(pool: Pool, now: Instant, passwords: Passwords) -> AsyncIterator[Api]:
    """The app with its recorder running, and the cast."""
    bus = Bus()
    reach = make_reach(probe_policy(), nameservers=())
    context = Context(
        pool=pool,
        clock=lambda: now,
        recorder=Recorder(pool, bus, lambda: now),
        bus=bus,
        keyring=Keyring(b"k" * 32),
        reach=reach,
        means=Means(reach=replace(reach, policy=notify_policy()), now=lambda: now),
        passwords=passwords,
        options=Options(version="0.3.8", regions=frozenset({"core", "eu"})),
        test_permits=trio.CapacityLimiter(4),
    )
    app = make_app(context, ROUTES)
    api = Api(pool, context, app.test_client(use_cookies=False))
    async with pool.transaction("cast") as tx:
        await _make_places(tx, api)
        await _make_people(tx, api)
    async with trio.open_nursery() as nursery:
        await nursery.start(context.recorder.run)
        nursery.start_soon(reach.lag.watch)
        yield api
        nursery.cancel_scope.cancel()


async def _make_places(tx: Tx, api: Api) -> None:
    for slug in ("acme", "other"):
        uid = uuid7()
        org = await projects.insert_organization(tx, uid, slug, slug.title())
        assert org is not None
        api.orgs[slug] = org, uid
        for name in ("shop", "mill"):
            uid = uuid7()
            project = await projects.insert_project(tx, org, uid, name, f"{slug} {name}")
            assert project is not None
            api.projects[f"{slug}/{name}"] = project, uid


async def _make_people(tx: Tx, api: Api) -> None:
    for name, place in PEOPLE.items():
        uid = uuid7()
        key = await users.insert_user(
            tx, uid, f"{name}@example.com", name, None, admin=name == "global_admin"
        )
        assert key is not None
        api.users[name] = key, uid
        if place is not None:
            org, project, role = _place(api, place[0], place[1], place[2])
            await users.insert_membership(tx, org, uuid7(), key, project, role)
        _, secret = await insert_session(tx, key)
        api.credentials[name] = {"Cookie": f"{COOKIE}={secret}"}
    for name, (tenant, project_name, role, actions) in TOKENS.items():
        org, project, _ = _place(api, tenant, project_name, role)
        _, token = await insert_token(tx, org, project, role, actions)
        api.credentials[name] = {"Authorization": f"Bearer {token}"}


def _place(api: Api, tenant: str, project: str | None, role: Role) -> tuple[int, int | None, Role]:
    key = api.projects[f"{tenant}/{project}"][0] if project else None
    return api.orgs[tenant][0], key, role


async def insert_session(tx: Tx, user: int) -> tuple[UUID, str]:
    uid, secret = uuid7(), secrets.token_urlsafe(32)
    expires = Instant(tx.now + HOUR)
    await sessions.insert_session(tx, digest(secret), uid, user, "a test", expires)
    return uid, secret


async def insert_token(
    tx: Tx, org: int, project: int | None, role: Role, actions: list[str] | None
) -> tuple[UUID, str]:
    uid, token = uuid7(), token_from(TokenKind.API, secrets.token_bytes(RANDOM_BYTES))
    await tokens.insert_token(tx, org, uid, project, "t", role, actions, digest(token), None)
    return uid, token
