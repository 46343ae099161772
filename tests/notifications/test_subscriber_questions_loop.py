"""The question whether an address subscribes: no visitor makes work for the operator with it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from leadline.probes.net.egress_policy import probe_policy
from leadline.storage.core.instant import HOUR, Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.notifications.queries.dead_letter_list import count_dead
from leadline.storage.notifications.rules.delivery_retry import ROOMS
from leadline.storage.notifications.tables.outbox_claims import select_backlog
from leadline.storage.notifications.transactions.lease_deliveries import lease_deliveries
from leadline.storage.status_pages.rules.subscription import (
    MAIL_PAUSE_US,
    WEBHOOKS_ASKED_MOST,
    SubscriberKind,
)
from tests.support.peers.mail_server import Box, Server, serving_mail
from tests.support.worlds.leasing import means
from tests.support.worlds.subscribing import Readers, readers_of
from tests.support.worlds.world import World

ADA = "ada@example.com"


@pytest.fixture
def server() -> Iterator[Server]:
    with serving_mail(Box()) as server:
        yield server


@pytest.fixture
async def readers(world: World, server: Server) -> Readers:
    return await readers_of(world, server)


@pytest.mark.parametrize("kind", SubscriberKind)
async def test_an_undeliverable_confirmation_is_no_dead_letter(
    readers: Readers, kind: SubscriberKind
) -> None:
    """The webhook refuses connections, and the mail server refuses the address temporarily."""
    address = "later@example.com" if kind == "mail" else "https://127.0.0.1:1/hook"
    stranger = replace(means().reach, policy=probe_policy())
    async with readers.delivering(stranger=stranger) as leaser:
        await readers.ask(address, kind)
        await readers.until_quiet()
    ((status, attempts, error),) = await readers.rows(
        "select status, attempts, last_error from outbox"
    )
    assert (status, attempts) == ("delivered", 3)
    assert error
    assert not any(outcome == "dead" for _, outcome in leaser.counts)
    async with readers.world.pool.transaction("look", read_only=True) as tx:
        assert await count_dead(tx) == 0
        assert (await select_backlog(tx)).dead == 0
        assert (await select_backlog(tx)).failing == 0
    assert await readers.rows("select confirmed_at from subscribers") == [(None,)]


async def test_a_confirmation_whose_last_attempt_is_lost_is_no_dead_letter(
    readers: Readers,
) -> None:
    await readers.ask("https://127.0.0.1:1/hook", SubscriberKind.WEBHOOK)
    for _ in range(2):
        async with readers.world.pool.transaction("lease") as tx:
            await lease_deliveries(tx, ROOMS, 1)
        readers.world.now = Instant(readers.world.now + HOUR)
    found = await readers.rows("select status, last_error from outbox")
    assert found == [("delivered", "lease_lost")]


async def test_webhooks_of_a_page_are_asked_a_few_at_a_time(readers: Readers) -> None:
    for number in range(WEBHOOKS_ASKED_MOST):
        await readers.ask(f"https://example.com/{number}", SubscriberKind.WEBHOOK)
    with pytest.raises(Refused, match="rate_limited"):
        await readers.ask("https://example.com/more", SubscriberKind.WEBHOOK)
    await readers.ask(ADA)
    await readers.rows("update outbox set status = 'delivered' returning id")
    await readers.ask("https://example.com/more", SubscriberKind.WEBHOOK)


async def test_a_question_that_waits_does_not_keep_the_next_one_back(readers: Readers) -> None:
    await readers.ask(ADA)
    readers.world.now = Instant(readers.world.now + MAIL_PAUSE_US)
    await readers.ask(ADA)
    assert await readers.rows("select status, ready from outbox order by id") == [
        ("pending", True),
        ("pending", True),
    ]


@pytest.mark.parametrize("kind", SubscriberKind)
async def test_only_a_notice_by_mail_is_a_dead_letter(
    readers: Readers, kind: SubscriberKind
) -> None:
    """The visitor confirmed before the mail server or the webhook begins to refuse."""
    address = "later@example.com" if kind == "mail" else "https://127.0.0.1:1/hook"
    await readers.ask(address, kind)
    await readers.rows("delete from outbox returning id")
    await readers.rows("update subscribers set confirmed_at = created_at returning id")
    stranger = replace(means().reach, policy=probe_policy())
    async with readers.delivering(stranger=stranger):
        for title in ("One", "Two", "Three"):
            await readers.open_incident(title=title)
        await readers.until_quiet()
    async with readers.world.pool.transaction("look", read_only=True) as tx:
        assert await count_dead(tx) == (3 if kind is SubscriberKind.MAIL else 0)
    assert not await readers.rows("select id from outbox where status = 'pending'")
