"""Claims and proofs of domains by pages of several organizations, in any order and concurrently.

The model knows the DNS of each domain. Only the owner of a domain writes records, and each page
sees only its own token.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from uuid import UUID

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from uuid_utils.compat import uuid7

from leadline.probes.check.domain_evidence import DomainEvidence
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.accounts.tables import projects
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.pools import Tx
from leadline.storage.status_pages.queries.status_page_domains import select_domains
from leadline.storage.status_pages.queries.status_pages import select_status_page
from leadline.storage.status_pages.rows import DomainClaim, PageRow
from leadline.storage.status_pages.rules.status_page_edit import PageDraft
from leadline.storage.status_pages.transactions.edit_pages import create_page, delete_page
from leadline.storage.status_pages.transactions.set_domain import set_domain
from tests.monitors.test_secrets_while_monitors_are_saved_storage import both
from tests.support.worlds.databases import Databases
from tests.support.worlds.world import World, small_world

DOMAIN, SECOND = "status.example.com", "status.example.org"
_numbers = count()

Write = Callable[[World, Tx], Awaitable[object]]


@dataclass(frozen=True)
class Owner:
    """A page with an admin of its organization."""

    page: UUID
    who: Principal

    async def set(
        self, world: World, domain: str, seen: DomainEvidence | None = None, tx: Tx | None = None
    ) -> PageRow:
        token = f"token{next(_numbers)}"

        async def work(tx: Tx) -> PageRow:
            return await set_domain(tx, self.who, self.page, domain, (), token, seen)

        return await (world.pool.transact("set_domain", work) if tx is None else work(tx))

    async def claim(self, world: World, domain: str) -> DomainClaim:
        claim = (await self.set(world, domain)).claim
        assert claim is not None
        assert claim.domain == domain
        return claim

    async def prove(self, world: World, domain: str) -> PageRow:
        token = (await self.claim(world, domain)).token
        return await self.set(world, domain, by_record(token))


def by_record(*tokens: str) -> DomainEvidence:
    return DomainEvidence(records=frozenset(tokens), is_answered=True)


def by_file(token: str) -> DomainEvidence:
    return DomainEvidence(file=token, is_answered=True)


async def new_owner(world: World, slug: str) -> Owner:
    """Returns a page of the organization, which is created if it does not exist."""
    async with world.pool.transaction("new_owner") as tx:
        found = await tx.row("select id, uid from organizations where slug = %(s)s", s=slug)
        if found is None:
            uid = uuid7()
            found = await projects.insert_organization(tx, uid, slug, slug.title()), uid
        org, uid = found
        member = Membership(org, None, Role.ORG_ADMIN)
        who = Principal(CredentialKind.SESSION, (member,), user=uuid7(), label=f"{slug} admin")
        draft = PageDraft(slug=f"page{next(_numbers)}", title="Page")
        row = await create_page(tx, who, uid, draft, world.keyring)
    return Owner(row.uid, who)


async def served(world: World) -> dict[str, str]:
    async with world.pool.transaction("served", read_only=True) as tx:
        return await select_domains(tx)


async def page_of(world: World, owner: Owner) -> PageRow:
    async with world.pool.transaction("page", read_only=True) as tx:
        row = await select_status_page(tx, owner.page)
    assert row is not None
    return row


async def audits(world: World, action: str) -> list[tuple[Any, ...]]:
    return await world.rows(
        "select o.slug, actor_label, actor_user, target from audit_entries a"
        " join organizations o on o.id = a.org where action = %(a)s order by a.id",
        a=action,
    )


async def test_a_claim_serves_nothing(world: World) -> None:
    owner = await new_owner(world, "acme")
    await owner.claim(world, DOMAIN)
    assert await served(world) == {}
    row = await owner.prove(world, DOMAIN)
    assert (row.domain, row.claim) == (DOMAIN, None)
    assert await served(world) == {DOMAIN: row.slug}


async def test_a_squatter_does_not_block_the_owner(world: World) -> None:
    squatter, owner = await new_owner(world, "evil"), await new_owner(world, "acme")
    theirs = await squatter.claim(world, DOMAIN)
    ours = await owner.claim(world, DOMAIN)
    assert theirs.token != ours.token
    seen = by_record(ours.token)
    # The record of the owner is in the DNS, and proves nothing for the other page.
    assert (await squatter.set(world, DOMAIN, seen)).domain is None
    assert (await owner.set(world, DOMAIN, seen)).domain == DOMAIN
    with pytest.raises(Refused, match="domain_taken"):
        await squatter.set(world, DOMAIN, by_record(ours.token, theirs.token))


async def test_a_domain_stays_served_until_the_next_is_proved(world: World) -> None:
    owner = await new_owner(world, "acme")
    await owner.prove(world, DOMAIN)
    row = await owner.set(world, SECOND)
    assert (row.domain, row.claim_domain) == (DOMAIN, SECOND)
    row = await owner.set(world, DOMAIN)
    assert (row.domain, row.claim) == (DOMAIN, None)
    row = await owner.prove(world, SECOND)
    assert await served(world) == {SECOND: row.slug}
    row = await owner.set(world, "")
    assert (row.domain, row.claim) == (None, None)
    assert await served(world) == {}


async def test_a_failed_check_says_why_and_keeps_the_token(world: World) -> None:
    owner = await new_owner(world, "acme")
    claim = await owner.claim(world, DOMAIN)
    for seen, reason in (
        (DomainEvidence(), "no_answer"),
        (by_record(), "not_found"),
        (by_record("another"), "other_token"),
        (by_file("another"), "other_token"),
    ):
        row = await owner.set(world, DOMAIN, seen)
        assert row.claim == DomainClaim(DOMAIN, claim.token, world.now, reason)
    with pytest.raises(Refused, match="loopback"):
        await owner.set(world, DOMAIN, DomainEvidence(file=claim.token, is_local=True))


async def set_before(world: World, owner: Owner) -> PageRow:
    """Gives the page the domain without a proof, as versions before proofs did."""
    row = await page_of(world, owner)
    async with world.pool.transaction("before") as tx:
        await tx.execute(
            "insert into status_page_domains (domain, org, page) values (%(d)s, %(o)s, %(p)s)",
            d=DOMAIN,
            o=row.org,
            p=row.id,
        )
    return await page_of(world, owner)


async def test_a_domain_from_before_moves_to_the_owner_of_the_dns_only(world: World) -> None:
    """An upgrade keeps it, whoever set it."""
    before, owner = await new_owner(world, "evil"), await new_owner(world, "acme")
    row = await set_before(world, before)
    token = (await owner.claim(world, DOMAIN)).token
    assert (await owner.set(world, DOMAIN, by_file(token))).claim_reason == "record_needed"
    assert await served(world) == {DOMAIN: row.slug}
    after = await owner.set(world, DOMAIN, by_record(token))
    assert await served(world) == {DOMAIN: after.slug}
    assert (await page_of(world, before)).domain is None
    # The organization that lost it learns that, and nothing of the other.
    assert await audits(world, "status_page.lose_domain") == [
        ("evil", "Leadline", None, f"status_page:{row.uid} domain={DOMAIN}")
    ]


async def test_a_domain_from_before_is_served_while_its_page_proves_it(world: World) -> None:
    owner, other = await new_owner(world, "acme"), await new_owner(world, "evil")
    row = await set_before(world, owner)
    assert (row.domain, row.is_domain_proved) == (DOMAIN, False)
    token = (await owner.claim(world, DOMAIN)).token
    for seen, is_proved in ((by_record(), False), (by_record(token), True)):
        row = await owner.set(world, DOMAIN, seen)
        assert (row.domain, row.is_domain_proved) == (DOMAIN, is_proved)
        assert await served(world) == {DOMAIN: row.slug}
    assert row.claim is None
    assert await audits(world, "status_page.lose_domain") == []
    theirs = (await other.claim(world, DOMAIN)).token
    with pytest.raises(Refused, match="domain_taken"):
        await other.set(world, DOMAIN, by_record(token, theirs))


async def test_a_page_of_the_same_organization_has_to_release_its_domain(world: World) -> None:
    first, second = await new_owner(world, "acme"), await new_owner(world, "acme")
    await first.prove(world, DOMAIN)
    with pytest.raises(Refused, match="domain_taken"):
        await second.set(world, DOMAIN)
    await first.set(world, "")
    await second.prove(world, DOMAIN)


@pytest.mark.parametrize("slugs", [("acme", "mill"), ("acme", "acme")])
async def test_of_two_proofs_at_the_same_time_one_takes_the_domain(
    world: World, slugs: tuple[str, str]
) -> None:
    """Both records are in the DNS."""
    first, second = [await new_owner(world, slug) for slug in slugs]
    tokens = [(await one.claim(world, DOMAIN)).token for one in (first, second)]
    seen = by_record(*tokens)

    async def prove_first(world: World, tx: Tx) -> None:
        await first.set(world, DOMAIN, seen, tx)

    async def prove_second(world: World, tx: Tx) -> None:
        await second.set(world, DOMAIN, seen, tx)

    assert await both(world, prove_first, prove_second) == ["done", "domain_taken"]
    assert await served(world) == {DOMAIN: (await page_of(world, first)).slug}
    assert (await page_of(world, second)).claim_domain == DOMAIN


async def test_pages_take_each_others_domains_at_the_same_time(world: World) -> None:
    owners = [await new_owner(world, slug) for slug in ("acme", "mill")]
    for owner, domain in zip(owners, (DOMAIN, SECOND), strict=True):
        await owner.prove(world, domain)
    claims = [
        await owner.claim(world, domain)
        for owner, domain in zip(owners, (SECOND, DOMAIN), strict=True)
    ]

    async def take(owner: Owner, claim: DomainClaim) -> None:
        # Refused if the other transaction has removed the row meanwhile: the check is repeated.
        while (await page_of(world, owner)).claim is not None:
            with suppress(Refused):
                await owner.set(world, claim.domain, by_record(claim.token))

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for owner, claim in zip(owners, claims, strict=True):
                nursery.start_soon(take, owner, claim)
    assert [(await page_of(world, owner)).domain for owner in owners] == [SECOND, DOMAIN]


@pytest.mark.parametrize("deleted_first", [True, False])
@pytest.mark.parametrize("of_holder", [True, False])
async def test_a_page_is_deleted_while_a_domain_is_proved(
    world: World, *, deleted_first: bool, of_holder: bool
) -> None:
    holder, owner = await new_owner(world, "evil"), await new_owner(world, "acme")
    await holder.prove(world, DOMAIN)
    seen = by_record((await owner.claim(world, DOMAIN)).token)
    deleted = holder if of_holder else owner

    async def prove(world: World, tx: Tx) -> None:
        await owner.set(world, DOMAIN, seen, tx)

    async def drop(world: World, tx: Tx) -> None:
        await delete_page(tx, deleted.who, deleted.page)

    order: tuple[Write, Write] = (drop, prove) if deleted_first else (prove, drop)
    told = await both(world, *order)
    if deleted_first:
        assert told == ["done", "domain_taken" if of_holder else "not_found"]
    else:
        assert told == ["done", "done"]
    if of_holder:
        with suppress(Refused):
            await owner.set(world, DOMAIN, seen)
        assert list(await served(world)) == [DOMAIN]
    assert await world.rows("select from status_page_domain_claims") == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "check", "record", "erase", "file", "remove", "silence"]),
        st.integers(0, 2),
        st.sampled_from([DOMAIN, SECOND]),
    ),
    max_size=25,
)


@dataclass
class Model:
    records: dict[str, set[str]] = field(default_factory=lambda: {DOMAIN: set(), SECOND: set()})
    files: dict[str, str] = field(default_factory=lambda: {DOMAIN: "", SECOND: ""})
    is_silent: bool = False

    def evidence(self, domain: str) -> DomainEvidence:
        if self.is_silent:
            return DomainEvidence()
        records = frozenset(self.records[domain])
        return DomainEvidence(records=records, file=self.files[domain], is_answered=True)


async def step(
    world: World, model: Model, owners: list[Owner], what: str, number: int, domain: str
) -> None:
    owner = owners[number]
    before = await page_of(world, owner)
    token = before.claim_token if before.claim_domain == domain else None
    match what:
        case "claim" | "check":
            seen = model.evidence(domain) if what == "check" else None
            with suppress(Refused):
                after = await owner.set(world, domain, seen)
                if after.domain != before.domain:
                    assert after.domain == domain
                    assert token is not None
                    assert token in model.records[domain] or model.files[domain] == token
                    assert not model.is_silent
        case "remove":
            await owner.set(world, "")
        case "record" if token is not None:
            model.records[domain].add(token)
        case "file" if token is not None:
            model.files[domain] = token
        case "erase":
            model.records[domain].clear()
            model.files[domain] = ""
        case "silence":
            model.is_silent = not model.is_silent


@given(steps=STEPS)
async def test_no_history_serves_a_domain_without_its_proof_or_blocks_its_owner(
    databases: Databases, world_template: str, steps: list[tuple[str, int, str]]
) -> None:
    dsn = databases.lend(world_template)
    async with small_world(dsn) as world:
        owners = [await new_owner(world, f"tenant{n}") for n in range(3)]
        model = Model()
        for what, number, domain in steps:
            await step(world, model, owners, what, number, domain)
        # Whatever the others did, a page whose record is the only one gets the domain.
        last = await new_owner(world, "last")
        await last.prove(world, DOMAIN)
        assert (await served(world))[DOMAIN] == (await page_of(world, last)).slug
    databases.give_back(dsn)
