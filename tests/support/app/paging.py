"""Helpers for tests of status pages: a page of the organization, its components, and results."""

from typing import Any

from leadline.probes.check.domain_evidence import TEXT_PREFIX, DomainEvidence
from leadline.storage.core.instant import DAY, Instant
from leadline.storage.monitors.rows import MonitorRow
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call

TODAY = Instant(FROZEN_NOW - FROZEN_NOW % DAY)


async def new_page(api: Api, slug: str = "harbour", **given: Any) -> Any:
    body = {"slug": slug, "title": "Harbour Goods", **given}
    return await call(
        api, "POST", f"/organizations/{api.org}/status-pages", body, 201, who="org_admin"
    )


async def new_component(api: Api, page: Any, name: str = "Checkout", **given: Any) -> Any:
    path = f"/status-pages/{page['id']}/components"
    return await call(api, "POST", path, {"name": name, **given}, 201, who="org_admin")


async def read(api: Api, page: Any, status: int = 200, what: str = "", **query: str) -> Any:
    """Reads the public page, without cached answers."""
    api.context.kept.forget()
    path = f"/public/status-pages/{page['slug']}{what}"
    return await call(api, "GET", path, status=status, who="nobody", query=query)


async def rendered(api: Api, page: Any, who: str = "viewer") -> Any:
    return await call(api, "GET", f"/status-pages/{page['id']}/render", who=who)


async def stands(api: Api, row: MonitorRow, status: str, at: Instant = FROZEN_NOW) -> None:
    """Stores the state that a result at the instant leaves."""
    given = {"org": row.org, "monitor": row.id}
    async with api.pool.transaction("result") as tx:
        await tx.execute(
            "insert into heartbeats (org, monitor, ts, latency_ms, up)"
            " values (%(org)s, %(monitor)s, at(%(at)s), 1, %(up)s)",
            up=status == "up",
            at=at,
            **given,
        )
        await tx.execute(
            "update monitor_states set status = %(status)s, since = at(%(at)s)"
            " where org = %(org)s and monitor = %(monitor)s",
            status=status,
            at=at,
            **given,
        )


async def measured(api: Api, row: MonitorRow, days_ago: int, good: int, bad: int) -> None:
    """Stores a whole earlier day, in microseconds; the rest of the day is unknown."""
    async with api.pool.transaction("day") as tx:
        await tx.execute(
            "insert into monitor_days (org, monitor, day, good_us, bad_us, unknown_us,"
            " excluded_us, up, total) values (%(org)s, %(monitor)s, at(%(day)s), %(good)s,"
            " %(bad)s, %(unknown)s, 0, 90, 100)",
            org=row.org,
            monitor=row.id,
            day=TODAY - days_ago * DAY,
            good=good,
            bad=bad,
            unknown=DAY - good - bad,
        )
        # The monitor existed at that time, and its time is sealed until now.
        await tx.execute(
            "update monitor_terms set from_at = least(from_at, at(%(day)s))"
            " where org = %(org)s and monitor = %(monitor)s",
            org=row.org,
            monitor=row.id,
            day=TODAY - days_ago * DAY,
        )
        await tx.execute(
            "update shards set sealed_through = at(%(now)s), rolled_up_through = at(%(now)s),"
            " reserved_through = at(%(now)s), settled_through = at(%(now)s)",
            now=TODAY,
        )


async def put_domain(api: Api, page: Any, domain: str, status: int = 200, **given: Any) -> Any:
    path = f"/status-pages/{page['id']}/domain"
    who = given.pop("who", "org_admin")
    return await call(api, "PUT", path, {"domain": domain, **given}, status, who=who)


def see(api: Api, **evidence: Any) -> None:
    """Sets the evidence of every domain, in place of name servers."""

    async def look(_domain: str) -> DomainEvidence:
        return DomainEvidence(**{"is_answered": True, **evidence})

    object.__setattr__(api.context, "look_at_domain", look)


def token_of(page: Any) -> str:
    """Returns the token of the missing proof."""
    return str(page["domain_proof"]["txt"]["value"].removeprefix(TEXT_PREFIX))


async def prove_domain(api: Api, page: Any, domain: str, who: str = "org_admin") -> Any:
    """Claims a domain and proves it with a record."""
    claimed = await put_domain(api, page, domain, who=who)
    see(api, records=frozenset({token_of(claimed)}))
    return await put_domain(api, page, domain, who=who)
