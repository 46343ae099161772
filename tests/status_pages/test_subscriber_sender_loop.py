"""Subscribers receive each public update once. Unconfirmed addresses receive only the confirmation
request, and addresses that unsubscribed or refuse mail receive nothing.
"""

import json
import re
import ssl
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
import trustme

from leadline.http.status_pages.public.page_text import update_word
from leadline.probes.net.egress_policy import notify_policy, probe_policy
from leadline.probes.net.tls_contexts import TlsContexts
from leadline.storage.core.instant import HOUR, MINUTE, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.incidents.rules.incident import IncidentSource, IncidentStatus
from leadline.storage.notifications.tables import outbox
from leadline.storage.notifications.tables.outbox_claims import select_backlog
from leadline.storage.status_pages.queries.status_page_subscribers import select_subscription
from leadline.storage.status_pages.rules.status_page import Visibility
from leadline.storage.status_pages.rules.subscription import BOUNCES_MOST, SubscriberKind
from leadline.storage.status_pages.tables.subscribers import purge_unconfirmed
from leadline.storage.status_pages.transactions import fan_out as pass_on
from leadline.storage.status_pages.transactions import subscribe
from leadline.storage.status_pages.transactions.edit_pages import delete_page, update_page
from tests.support.peers.mail_server import Box, Server, serving_mail
from tests.support.peers.real_servers import HOST, write_certificate
from tests.support.peers.servers import answer, read_head
from tests.support.worlds.leasing import Arrival, means
from tests.support.worlds.subscribing import BASE, Readers, readers_of, text_of, token_of
from tests.support.worlds.world import World

ADA, BOB = "ada@example.com", "bob@example.com"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_mail(Box()) as server:
        yield server


@pytest.fixture
async def readers(world: World, server: Server) -> Readers:
    return await readers_of(world, server)


async def test_a_confirmed_subscriber_gets_mail_until_unsubscribing(readers: Readers) -> None:
    async with readers.delivering():
        await readers.ask(ADA)
        (question,) = await readers.until_letters(1)
        token = token_of(question)
        assert f"{BASE}/status/confirm/{token}" in text_of(question)
        assert question["List-Unsubscribe"] is None
        assert await readers.confirm(token)
        incident = await readers.open_incident()
        await readers.say(incident.uid, IncidentStatus.IDENTIFIED, "A partner is slow.\nWe wait.")
        await readers.say(incident.uid, None, "Only for us.", public=False)
        await readers.say(incident.uid, IncidentStatus.RESOLVED, "It works again.")
        _, opened, found, over = await readers.until_letters(4)
        await readers.leave(token)
        await readers.open_incident(title="Another")
        await readers.until_quiet()
    assert len(readers.letters()) == 4
    for letter, status, body in (
        (opened, IncidentStatus.INVESTIGATING, "We look into it."),
        (found, IncidentStatus.IDENTIFIED, "A partner is slow.\nWe wait."),
        (over, IncidentStatus.RESOLVED, "It works again."),
    ):
        assert letter["To"] == ADA
        assert letter["Subject"] == "Acme: Payments fail"
        assert f"{update_word(status)}: Payments fail" in text_of(letter)
        assert body in text_of(letter)
        assert f"{BASE}/status/shop" in text_of(letter)
        assert f"{BASE}/status/unsubscribe/{token}" in text_of(letter)
        one_click = f"<{BASE}/api/v1/public/subscriptions/{token}>"
        assert letter["List-Unsubscribe"] == one_click
        assert letter["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
        assert letter["References"] == opened["References"]
    assert readers.server is not None
    sent = readers.server.box.envelopes[-1].content
    assert isinstance(sent, bytes)
    assert f"\r\nList-Unsubscribe: {one_click}\r\n".encode() in sent, "the text is not MIME-encoded"
    assert max(len(line) for line in sent.split(b"\r\n")) <= 998
    assert len({letter["Message-ID"] for letter in (opened, found, over)}) == 3
    assert "owner" not in "".join(str(letter) for letter in readers.letters())


async def test_an_unconfirmed_address_gets_no_updates(readers: Readers, world: World) -> None:
    async with readers.delivering():
        await readers.ask(ADA)
        (question,) = await readers.until_letters(1)
        await readers.open_incident()
        await readers.until_quiet()
        world.now = Instant(world.now + 24 * HOUR)
        assert not await readers.confirm(token_of(question)), "the request has expired after a day"
        async with world.pool.transaction("drop") as tx:
            await purge_unconfirmed(tx)
    assert len(readers.letters()) == 1
    assert not await readers.rows("select id from subscribers")


async def test_an_address_gets_one_request_in_ten_minutes(readers: Readers, world: World) -> None:
    async with readers.delivering():
        for address in (ADA, ADA.upper(), "Ada@Example.com"):
            await readers.ask(address)
        first = readers.page
        await readers.open_page(slug="other", title="Other")
        await readers.ask(ADA)
        await readers.until_letters(1)
        # Wait until delivered: the lease would end when the clock is set forward.
        await readers.until_quiet()
        world.now = Instant(world.now + 10 * MINUTE - 1)
        await readers.ask(ADA)
        await readers.until_quiet()
        assert len(readers.letters()) == 1
        world.now = Instant(world.now + 1)
        readers.page = first
        await readers.ask(ADA)
        once, again = await readers.until_letters(2)
    assert token_of(once) == token_of(again), "both requests are one subscription"


async def test_a_subscriber_of_a_component_gets_only_its_incidents(
    readers: Readers, world: World
) -> None:
    pay, search = await world.monitor(), await world.monitor()
    paying = await readers.component(pay, "Payments")
    await readers.component(search, "Search")
    async with readers.delivering():
        await readers.ask(ADA, SubscriberKind.MAIL, paying)
        (question,) = await readers.until_letters(1)
        await readers.confirm(token_of(question))
        await readers.open_incident(search, title="Search is slow")
        await readers.open_incident(pay, title="Cards fail")
        letters = await readers.until_letters(2)
        await readers.until_quiet()
    assert [one["Subject"] for one in readers.letters()[1:]] == ["Acme: Cards fail"]
    assert "Affects: Payments." in text_of(letters[1])


async def test_a_request_by_another_person_changes_nothing(readers: Readers, world: World) -> None:
    monitor = await world.monitor()
    component = await readers.component(monitor, "Payments")
    async with readers.delivering():
        await readers.ask(ADA)
        (question,) = await readers.until_letters(1)
        await readers.confirm(token_of(question))
        await readers.until_quiet()
        world.now = Instant(world.now + HOUR)
        await readers.ask(ADA, SubscriberKind.MAIL, component)
        await readers.until_letters(2)
        assert await readers.rows("select components from subscribers") == [(None,)]
        assert await readers.confirm(token_of(question))
    assert await readers.rows("select components from subscribers") == [([component],)]


async def test_incidents_that_the_page_does_not_show_are_not_sent(
    readers: Readers, world: World
) -> None:
    elsewhere = await world.monitor()
    await readers.subscribe(ADA)
    async with readers.delivering():
        # Sources without a component, alerts of external systems, and internal updates.
        await readers.open_incident(elsewhere, title="Elsewhere")
        await readers.open_incident(external_key="k1", source=IncidentSource.API, author=None)
        await readers.open_incident(title="Ours", public=False)
        async with world.pool.transaction("hide") as tx:
            await update_page(
                tx, readers.owner, readers.page, None, Visibility.INTERNAL, world.keyring
            )
        await readers.open_incident(title="Hidden")
        await readers.until_quiet()
    assert not readers.letters()


async def test_an_automatic_incident_is_titled_with_the_component_name(
    readers: Readers, world: World
) -> None:
    monitor = await world.monitor(name="pay-7.internal")
    await readers.component(monitor, "Payments")
    await readers.subscribe(ADA)
    async with readers.delivering():
        title = "pay-7.internal is down"
        await readers.open_incident(monitor, title=title, source=IncidentSource.AUTO, author=None)
        (letter,) = await readers.until_letters(1)
    assert letter["Subject"] == "Acme: Payments is down"
    assert "internal" not in str(letter)


async def test_each_subscriber_gets_one_mail_if_the_fan_out_is_interrupted(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pass_on, "TOLD_AT_ONCE", 2)
    people = [f"reader{number}@example.com" for number in range(7)]
    await readers.subscribe(*people)
    original, passed = outbox.lock_shared_subscribers, 0

    async def breaking(
        tx: Tx, org: int, page: int, after: int, most: int
    ) -> list[tuple[int, int, list[UUID] | None]]:
        nonlocal passed
        passed += 1
        if passed in (3, 4):
            raise RuntimeError("struck")
        return await original(tx, org, page, after, most)

    monkeypatch.setattr(outbox, "lock_shared_subscribers", breaking)
    await readers.open_incident()
    async with readers.delivering():
        await readers.until_letters(len(people))
        await readers.until_quiet()
    told = await readers.rows(
        "select s.address from outbox o join destinations d on d.id = o.destination"
        " join subscribers s on s.id = d.subscriber order by s.id"
    )
    assert [row[0] for row in told] == people
    assert {one["To"] for one in readers.letters()} == set(people)
    assert (await readers.rows("select attempts from outbox order by id"))[0] == (3,)


async def test_an_address_is_suspended_after_repeated_bounces(readers: Readers) -> None:
    await readers.subscribe("nobody@example.com", ADA)
    async with readers.delivering():
        for number in range(BOUNCES_MOST + 1):
            await readers.open_incident(title=f"Incident {number}")
            await readers.until_letters(number + 1, ADA)
            await readers.until_quiet()
    found = await readers.rows("select address, bounces, suspended_at from subscribers order by id")
    assert found == [("nobody@example.com", BOUNCES_MOST, found[0][2]), (ADA, 0, None)]
    assert found[0][2] is not None
    assert not await readers.rows("select id from outbox where status <> 'delivered'")


class RefusingServer(Box):
    """A mail server that refuses the sender."""

    async def handle_MAIL(self, *_: Any) -> str:
        return "550 not from you"


async def test_a_refused_sender_does_not_count_as_a_bounce(world: World) -> None:
    with serving_mail(RefusingServer()) as server:
        readers = await readers_of(world, server)
        await readers.subscribe(ADA)
        async with readers.delivering():
            await readers.open_incident()
            await readers.until_quiet()
    assert await readers.rows("select bounces, suspended_at from subscribers") == [(0, None)]
    found = await readers.rows("select last_error from outbox where status = 'dead'")
    assert found == [("sender_refused 550",)]


async def test_a_delivery_resets_the_bounces(readers: Readers) -> None:
    await readers.subscribe(ADA)
    await readers.rows("update subscribers set bounces = 2 returning id")
    async with readers.delivering():
        await readers.open_incident()
        await readers.until_letters(1)
        await readers.until_quiet()
    assert await readers.rows("select bounces, suspended_at from subscribers") == [(0, None)]


async def test_a_temporary_failure_is_retried_and_is_no_bounce(readers: Readers) -> None:
    await readers.subscribe("later@example.com")
    async with readers.delivering():
        await readers.open_incident()
        await readers.until_quiet()
    assert await readers.rows("select status, attempts from outbox order by id") == [
        ("delivered", 1),
        ("dead", 3),
    ]
    assert await readers.rows("select bounces from subscribers") == [(0,)]
    assert not readers.letters()


async def test_mail_of_an_unlisted_page_links_with_its_token(world: World, server: Server) -> None:
    readers = await readers_of(world, server, visibility=Visibility.UNLISTED)
    await readers.subscribe(ADA)
    async with readers.delivering():
        await readers.open_incident()
        (letter,) = await readers.until_letters(1)
    found = re.search(
        r"/status/shop/incidents/[0-9a-f-]{36}\?token=leadline_page_", text_of(letter)
    )
    assert found is not None


async def test_the_subscriber_quota_does_not_reveal_known_addresses(
    readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscribe, "SUBSCRIBERS_OF_PAGE_MOST", 1)
    await readers.ask(ADA)
    for address in (ADA, BOB):
        with pytest.raises(Refused, match="subscriber_quota"):
            await readers.ask(address)


async def test_a_component_of_another_page_is_refused(readers: Readers, world: World) -> None:
    monitor = await world.monitor()
    component = await readers.component(monitor, "Payments")
    await readers.open_page(slug="other", title="Other")
    with pytest.raises(Refused, match="components of the page"):
        await readers.ask(ADA, SubscriberKind.MAIL, component)


async def test_a_token_shows_its_subscription(readers: Readers, world: World) -> None:
    async with readers.delivering():
        await readers.ask(ADA)
        (question,) = await readers.until_letters(1)
    async with world.pool.transaction("look", read_only=True) as tx:
        found = await select_subscription(tx, token_of(question))
    assert found is not None
    assert (found.page_title, found.address, found.confirmed_at) == ("Acme", ADA, None)
    assert found.can_confirm


async def test_deleting_a_page_deletes_its_subscribers(readers: Readers) -> None:
    await readers.subscribe(ADA)
    await readers.open_incident()
    async with readers.world.pool.transaction("delete") as tx:
        await delete_page(tx, readers.owner, readers.page)
    for table in ("subscribers", "destinations", "outbox"):
        assert not await readers.rows(f"select id from {table}")


class Hook:
    """A receiver over TLS; `echoes` sets whether it answers with the challenge."""

    def __init__(self) -> None:
        self.got: list[Arrival] = []
        self.echoes = True
        self.status = "200 OK"
        self.port = 0

    async def converse(self, stream: Any) -> None:
        data = await read_head(stream)
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
        while len(body) < int(headers.get("content-length", 0)):
            body += bytes(await stream.receive_some(65_536))
        self.got.append(Arrival(first.split()[1], headers, body))
        challenge = json.loads(body).get("challenge", "")
        said = json.dumps({"challenge": challenge if self.echoes else "other"}).encode()
        await stream.send_all(answer(said, self.status))
        await trio.aclose_forcefully(stream)


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
async def hook(authority: trustme.CA, tmp_path: Path) -> AsyncIterator[Hook]:
    chain, key = write_certificate(authority, tmp_path, HOST)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, key)
    hook = Hook()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(0, context, host=HOST)
        plain: Any = listeners[0].transport_listener
        hook.port = plain.socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, hook.converse, listeners)
        yield hook
        nursery.cancel_scope.cancel()


@pytest.fixture
def trusting(authority: trustme.CA, tmp_path: Path) -> TlsContexts:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(path))
    return TlsContexts(path)


async def test_a_webhook_is_confirmed_by_echoing_the_challenge(
    readers: Readers, hook: Hook, trusting: TlsContexts
) -> None:
    stranger = replace(means().reach, policy=probe_policy(), contexts=trusting)
    async with readers.delivering(stranger=stranger):
        hook.echoes = False
        await readers.ask(f"https://{HOST}:{hook.port}/no", SubscriberKind.WEBHOOK)
        await readers.until_quiet()
        hook.echoes = True
        await readers.ask(f"https://{HOST}:{hook.port}/yes", SubscriberKind.WEBHOOK)
        await readers.until_quiet()
        incident = await readers.open_incident()
        await readers.until_quiet()
    assert [one.path for one in hook.got] == ["/no", "/yes", "/yes"]
    told = hook.got[-1].document
    assert told["event"] == "status_page.incident"
    assert told["incident"]["id"] == str(incident.uid)
    assert told["update"]["body"] == "We look into it."
    assert told["page"] == {"title": "Acme", "url": f"{BASE}/status/shop"}
    assert told["unsubscribe_url"].startswith(f"{BASE}/api/v1/public/subscriptions/leadline_")
    assert not await readers.rows("select id from outbox where status = 'dead'")


async def test_a_chat_is_confirmed_by_a_link_in_its_channel(
    readers: Readers, hook: Hook, trusting: TlsContexts
) -> None:
    stranger = replace(means().reach, policy=probe_policy(), contexts=trusting)
    hook.echoes = False
    async with readers.delivering(stranger=stranger):
        for kind in (SubscriberKind.SLACK, SubscriberKind.TEAMS):
            await readers.ask(f"https://{HOST}:{hook.port}/{kind}", kind)
            await readers.until_quiet()
        await readers.open_incident(title="Before <!channel>")
        await readers.until_quiet()
        asked = {one.path: json.dumps(one.document) for one in hook.got}
        assert sorted(asked) == ["/slack", "/teams"]
        assert len(hook.got) == 2
        for text in asked.values():
            (token,) = set(re.findall(r"/status/confirm/(leadline_\w+)", text))
            assert await readers.confirm(token)
        incident = await readers.open_incident(title="After <!channel>")
        await readers.until_quiet()
    told = {one.path: one.document for one in hook.got[2:]}
    slack, teams = told["/slack"], told["/teams"]
    assert "After &lt;!channel&gt;" in slack["text"]
    assert len(hook.got) == 4
    card = teams["attachments"][0]["content"]
    assert card["body"][0]["inlines"][0]["text"] == "Acme: After <!channel>"
    assert [one["url"].split("/leadline_")[0] for one in card["actions"]] == [
        f"{BASE}/status/shop/incidents/{incident.uid}",
        f"{BASE}/status/unsubscribe",
    ]
    assert not await readers.rows("select id from outbox where status = 'dead'")


@pytest.mark.parametrize("kind", sorted(set(SubscriberKind) - {SubscriberKind.MAIL}))
async def test_a_webhook_cannot_reach_private_networks(
    readers: Readers, hook: Hook, trusting: TlsContexts, kind: SubscriberKind
) -> None:
    stranger = replace(means().reach, policy=notify_policy(), contexts=trusting)
    async with readers.delivering(stranger=stranger):
        await readers.ask(f"https://{HOST}:{hook.port}/", kind)
        await readers.until_quiet()
    assert not hook.got
    assert await readers.rows("select confirmed_at, bounces from subscribers") == [(None, 1)]


async def test_a_failing_confirmed_webhook_raises_no_alarm(
    readers: Readers, hook: Hook, trusting: TlsContexts
) -> None:
    stranger = replace(means().reach, policy=probe_policy(), contexts=trusting)
    async with readers.delivering(stranger=stranger):
        await readers.ask(f"https://{HOST}:{hook.port}/", SubscriberKind.WEBHOOK)
        await readers.until_quiet()
        hook.status = "503 Service Unavailable"
        await readers.open_incident()
        await readers.until_quiet()
    assert len(hook.got) == 1 + 3
    async with readers.world.pool.transaction("look", read_only=True) as tx:
        assert (await select_backlog(tx)).dead == 0
        assert (await select_backlog(tx)).failing == 0
    assert await readers.rows("select confirmed_at is null, bounces from subscribers") == [
        (False, 1)
    ]
