"""Helpers for tests of services: requests as one of the cast, services with members, and sealed
time.
"""

from typing import Any
from uuid import UUID

from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.core.time_span import TimeSpan
from leadline.storage.services.rules.service_health import Durations
from leadline.storage.services.rules.service_minute import MinuteSpan
from leadline.storage.services.tables import service_minutes as service_facts
from leadline.storage.services.tables import services
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

NOWHERE = "019b0000-0000-7000-8000-000000000000"
UP = Durations(good_us=MINUTE, healthy_us=MINUTE)
DOWN = Durations(bad_us=MINUTE, down_us=MINUTE)
UNKNOWN = Durations(unknown_us=MINUTE, health_unknown_us=MINUTE)


async def call(
    api: Api,
    method: str,
    path: str,
    body: Any = None,
    status: int = 200,
    *,
    who: str = "editor",
    query: dict[str, Any] | None = None,
) -> Any:
    """Returns the body of an answer, after a check of its status."""
    answer = await api.ask(who, method, f"/api/v1{path}", body, query=query)
    data = await answer.get_data()
    assert answer.status_code == status, data
    return await answer.get_json() if data else None


async def refused(api: Api, method: str, path: str, body: Any, status: int) -> str:
    found = await call(api, method, path, body, status)
    assert list(found) == ["error"]
    return str(found["error"])


def services_of(api: Api, place: str = "acme/shop") -> str:
    return f"/projects/{api.projects[place][1]}/services"


async def new(api: Api, slug: str, **given: Any) -> str:
    """Creates a service and returns its path."""
    made = await call(api, "POST", services_of(api), {"slug": slug, **given}, 201)
    return f"{services_of(api)}/{made['id']}"


def uid_of(path: str) -> str:
    return path.rpartition("/")[2]


def document(*monitors: object, revision: int = 0, **given: Any) -> dict[str, Any]:
    """Returns a declaration in which every member counts toward the SLI, unless given otherwise."""
    uids = [str(uid) for uid in monitors]
    return {"expected_revision": revision, "monitors": uids, "sli": uids, **given}


async def declared(api: Api, slug: str = "checkout", members: int = 1) -> str:
    """Creates a service with new monitors as members, and returns its path."""
    path = await new(api, slug)
    monitors = [(await api.new_monitor()).uid for _ in range(members)]
    await call(api, "PUT", f"{path}/declaration", document(*monitors))
    return path


async def sealed(api: Api, path: str, *lengths: tuple[int, Durations]) -> Instant:
    """Seals these minutes, up to now, as the sealer would write them. Returns the start of the
    service's time.
    """
    start = Instant(FROZEN_NOW - sum(count for count, _ in lengths) * MINUTE)
    runs, at = [], start
    for count, each in lengths:
        end = Instant(at + count * MINUTE)
        while at < end:
            cut = Instant(min(end, at - at % DAY + DAY))
            runs.append(MinuteSpan(at, cut, 1, each))
            at = cut
    async with api.pool.transaction("seal") as tx:
        row = await services.lock_service(tx, UUID(uid_of(path)))
        assert row is not None
        await services.begin_time(tx, row.key, start, None)
        await tx.execute(
            "update service_epochs set effective_at = at(%(start)s) where service = %(id)s",
            start=start,
            id=row.id,
        )
        span = {row.key: TimeSpan(start, FROZEN_NOW)}
        await service_facts.replace_minutes(tx, span, {row.key: runs})
        await service_facts.put_sums(tx, span, {row.key: FROZEN_NOW})
        await services.advance_seals(tx, {row.key: FROZEN_NOW})
    return start


async def managed(api: Api, path: str) -> None:
    """Marks the service as managed by a file."""
    async with api.pool.transaction("manage") as tx:
        await tx.execute(
            "update services set managed_by = 'files' where uid = %(uid)s", uid=UUID(uid_of(path))
        )


async def audited(api: Api) -> list[tuple[str, str]]:
    return await api.rows(
        "select action, target from audit_entries where action like 'service.%%' order by id"
    )
