"""Subscribers of the status pages of the small world, and the mail that they receive."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email.message import EmailMessage
from typing import Any
from uuid import UUID

import trio

from leadline.daemon.loops.outbox_leaser import OutboxLeaser
from leadline.daemon.process.loop_runner import run_loop
from leadline.daemon.runtime import limits
from leadline.probes.senders.send_result import SendContext
from leadline.storage.accounts.rules.access import CredentialKind as PrincipalKind
from leadline.storage.accounts.rules.access import Membership, Principal, Role
from leadline.storage.incidents.rows import IncidentRow
from leadline.storage.incidents.rules.incident import IncidentImpact, IncidentSource, IncidentStatus
from leadline.storage.incidents.tables.incidents import lock_incident
from leadline.storage.incidents.transactions.write_incident import (
    IncidentEntry,
    Opening,
    open_incident,
    write_entry,
)
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.notifications.rules.delivery_retry import ROOMS
from leadline.storage.status_pages.queries.status_pages import select_page
from leadline.storage.status_pages.rules.status_page import Visibility
from leadline.storage.status_pages.rules.status_page_edit import (
    BindingTarget,
    ComponentDraft,
    PageDraft,
)
from leadline.storage.status_pages.rules.subscription import SubscriberKind, SubscriptionRequest
from leadline.storage.status_pages.transactions.confirm_subscription import confirm
from leadline.storage.status_pages.transactions.edit_components import create_component
from leadline.storage.status_pages.transactions.edit_pages import create_page
from leadline.storage.status_pages.transactions.subscribe import subscribe
from leadline.storage.status_pages.transactions.unsubscribe import unsubscribe
from tests.support.peers.mail_server import Server, mail_of
from tests.support.worlds.leasing import PASS_SECONDS, means
from tests.support.worlds.world import World

BASE = "https://up.example.com"
_PENDING = "select id from outbox where status = 'pending'"
_TOKEN = re.compile(r"leadline_subscription_[0-9A-Za-z]{43}")


class Readers:
    """One status page of the project, and its subscribers."""

    def __init__(self, world: World, server: Server | None = None) -> None:
        self.world = world
        self.server = server
        self.page = self.org = UUID(int=0)

    @property
    def owner(self) -> Principal:
        member = Membership(self.world.org, None, Role.ORG_ADMIN)
        return Principal(PrincipalKind.SESSION, (member,), user=UUID(int=1), label="owner@acme")

    async def open_page(self, **given: Any) -> None:
        values: dict[str, Any] = {"slug": "shop", "title": "Acme", **given}
        values.setdefault("project", self.world.project_uid)
        async with self.world.pool.transaction("create_page") as tx:
            draft = PageDraft(**values)
            row = await create_page(tx, self.owner, self.org, draft, self.world.keyring)
        self.page = row.uid

    async def component(self, monitor: MonitorRow, name: str) -> UUID:
        async with self.world.pool.transaction("create_component") as tx:
            draft = ComponentDraft(name=name, target=BindingTarget(monitor=monitor.uid))
            row = await create_component(tx, self.owner, self.page, draft)
        return row.uid

    async def ask(
        self, address: str, kind: SubscriberKind = SubscriberKind.MAIL, *components: UUID
    ) -> None:
        asked = SubscriptionRequest(
            kind=kind, address=address, components=frozenset(components) or None
        )
        async with self.world.pool.transaction("subscribe") as tx:
            page = await select_page(tx, self.page)
            assert page is not None
            await subscribe(tx, page, asked, self.world.keyring)

    async def confirm(self, token: str) -> bool:
        async with self.world.pool.transaction("confirm") as tx:
            return await confirm(tx, token)

    async def leave(self, token: str) -> None:
        async with self.world.pool.transaction("unsubscribe") as tx:
            await unsubscribe(tx, token)

    async def subscribe(self, *addresses: str) -> None:
        """Subscribes and confirms the addresses without a mail."""
        for address in addresses:
            await self.ask(address)
        await self.rows("delete from outbox returning id")
        await self.rows("update subscribers set confirmed_at = created_at returning id")

    async def open_incident(self, monitor: MonitorRow | None = None, **given: Any) -> IncidentRow:
        values: dict[str, Any] = {
            "org": self.world.org,
            "project": self.world.project,
            "monitor": None if monitor is None else monitor.id,
            "title": "Payments fail",
            "status": IncidentStatus.INVESTIGATING,
            "impact": IncidentImpact.MAJOR,
            "source": IncidentSource.MANUAL,
            "body": "We look into it.",
            "started_at": self.world.now,
            "author": self.owner,
            **given,
        }
        async with self.world.pool.transaction("open") as tx:
            return await open_incident(tx, Opening(**values))

    async def say(
        self, incident: UUID, status: IncidentStatus | None, body: str, **given: Any
    ) -> None:
        entry = IncidentEntry(
            status=status, body=body, author=self.owner, **{"public": True, **given}
        )
        async with self.world.pool.transaction("say") as tx:
            row = await lock_incident(tx, incident)
            assert row is not None
            await write_entry(tx, row, entry)

    async def rows(self, query: str, **given: Any) -> list[tuple[Any, ...]]:
        async with self.world.pool.transaction("look") as tx:
            return await tx.rows(query, **given)

    def letters(self, to: str | None = None) -> list[EmailMessage]:
        assert self.server is not None
        return [one for one in self.server.box.letters if to in (None, one["To"])]

    async def until_letters(self, count: int, to: str | None = None) -> list[EmailMessage]:
        with trio.fail_after(20):
            while len(found := self.letters(to)) < count:  # noqa: ASYNC110 - a thread takes them
                await trio.sleep(0.01)
        return found

    async def until_quiet(self) -> None:
        """Waits until no delivery is pending."""
        with trio.fail_after(20):
            # Only the database knows when.
            while await self.rows(_PENDING):  # noqa: ASYNC110
                await trio.sleep(0.01)

    def means(self, **given: Any) -> SendContext:
        ours = means()
        mail = None if self.server is None else mail_of(ours.reach, self.server.port)
        return replace(ours, mail=mail, **given)

    @asynccontextmanager
    async def delivering(self, **given: Any) -> AsyncIterator[OutboxLeaser]:
        """Runs a leaser like the daemon."""
        leaser = OutboxLeaser(
            self.world.pool,
            self.world.keyring,
            self.means(**given),
            max_attempts=3,
            base_url=BASE,
            random=lambda: 0.0,
            permits=limits.sending(ROOMS.whole.both),
        )
        async with trio.open_nursery() as nursery:
            await nursery.start(leaser.run)
            nursery.start_soon(
                run_loop, "leaser", leaser.pass_once, PASS_SECONDS, lambda _: None, leaser.wake
            )
            yield leaser
            nursery.cancel_scope.cancel()


async def readers_of(world: World, server: Server | None = None, **given: Any) -> Readers:
    """Creates the readers of a listed page, unless given otherwise."""
    readers = Readers(world, server)
    (readers.org,) = (await readers.rows("select uid from organizations"))[0]
    await readers.open_page(**{"visibility": Visibility.LISTED, **given})
    return readers


def text_of(letter: EmailMessage) -> str:
    body = letter.get_body(("plain",))
    assert body is not None
    text: str = body.get_content()
    return text.replace("\r\n", "\n")


def token_of(letter: EmailMessage) -> str:
    found = _TOKEN.search(text_of(letter))
    assert found is not None
    return found[0]
