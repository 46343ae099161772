"""Webhooks and channels of the small world, and the content of its outbox."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.engine.pools import Tx
from leadline.storage.notifications.rows import ChannelRow, WebhookRow
from leadline.storage.notifications.rules.notification import Notification, Topic
from leadline.storage.notifications.transactions.edit_channels import create_channel
from leadline.storage.notifications.transactions.edit_webhooks import create_webhook
from leadline.storage.notifications.transactions.enqueue_notifications import (
    enqueue_pages,
    enqueue_webhooks,
)
from tests.support.worlds.world import World

SECRET = "whsec_" + "a" * 43 + "="
_ROWS = """
select o.id, o.uid, d.webhook, d.channel, o.stream, o.event, o.status, o.ready, o.attempts,
  o.last_error, o.due_at, o.lease, o.payload
from outbox o join destinations d on d.org = o.org and d.id = o.destination
order by o.id
"""


@dataclass(frozen=True)
class Event:
    id: int
    uid: UUID
    webhook: int | None
    channel: int | None
    stream: UUID
    event: str
    status: str
    ready: bool
    attempts: int
    last_error: str
    due_at: int
    lease: UUID | None
    payload: dict[str, Any]


@dataclass
class OutboxWorld:
    world: World
    webhooks: list[WebhookRow] = field(default_factory=list)
    channels: list[ChannelRow] = field(default_factory=list)

    @property
    def admin(self) -> Principal:
        return Principal(
            CredentialKind.SESSION,
            (Membership(self.world.org, None, Role.ORG_ADMIN),),
            user=uuid7(),
            label="admin@acme",
        )

    async def webhook(
        self, url: str = "http://127.0.0.1:1/", *, project: UUID | None = None, enabled: bool = True
    ) -> WebhookRow:
        org_uid = (await self.world.rows("select uid from organizations"))[0][0]
        async with self.world.pool.transaction("make") as tx:
            row = await create_webhook(
                tx, self.admin, org_uid, url, SECRET, project, self.world.keyring, enabled=enabled
            )
        self.webhooks.append(row)
        return row

    async def channel(
        self, url: str = "http://127.0.0.1:1/", *, kind: str = "webhook", enabled: bool = True
    ) -> ChannelRow:
        config = {"url": url}
        async with self.world.pool.transaction("make") as tx:
            row = await create_channel(
                tx,
                self.world.editor,
                self.world.project_uid,
                kind,
                f"c{len(self.channels)}",
                config,
                self.world.keyring,
                enabled=enabled,
            )
        self.channels.append(row)
        return row

    async def enqueue_in(
        self, tx: Tx, stream: UUID, seq: int, event: str = "incident.updated"
    ) -> int:
        world = self.world
        return await enqueue_webhooks(tx, world.org, world.project, stream, event, {"seq": seq})

    async def enqueue(self, stream: UUID, seq: int, event: str = "incident.updated") -> int:
        async with self.world.pool.transaction("tell") as tx:
            return await self.enqueue_in(tx, stream, seq, event)

    async def page(self, tx: Tx, stream: UUID, title: str, *channels: int) -> list[int]:
        world = self.world
        return await enqueue_pages(
            tx, world.org, world.project, stream, stream, Topic.INCIDENT, channels, a_page(title)
        )

    async def paged(self, stream: UUID, title: str, *channels: int) -> list[int]:
        async with self.world.pool.transaction("page") as tx:
            return await self.page(tx, stream, title, *channels)

    async def events(self) -> list[Event]:
        return [Event(*row) for row in await self.world.rows(_ROWS)]


def a_page(title: str = "Shop is down", **given: Any) -> Notification:
    values: dict[str, Any] = {
        "event": "incident.opened",
        "status": "down",
        "severity": "major",
        "title": title,
        "lines": (),
        "why": "http_status shop.example.com",
        "since": None,
        "path": "/incidents/1",
        **given,
    }
    return Notification(**values)
