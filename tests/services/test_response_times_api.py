"""Times to acknowledge and to resolve per service: exact values, and the reason of an absent one.

The model computes them incident by incident, from the rows that the database has.
"""

import random
import statistics
from typing import Any

import pytest

from leadline.http.ui.formatting import duration
from leadline.storage.core.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_text
from leadline.storage.incidents.queries import response_times
from tests.conftest import FROZEN_NOW
from tests.oncall.test_oncall_screen import text_of
from tests.support.app.cast import Api
from tests.support.app.serving import call, declared, document, new, uid_of

FROM = Instant(FROZEN_NOW - 30 * DAY)
RANGE = {"from": to_text(FROM), "to": to_text(FROZEN_NOW)}
_INSERT = """
insert into incidents (org, uid, project, monitor, service, seq, title, status, impact, source,
  started_at, acknowledged_at, resolved_at, merged_into, created_at, updated_at)
values (%(org)s, gen_random_uuid(), %(project)s, %(monitor)s, %(service)s, 1, 'x', %(status)s,
  'major', 'manual', at(%(start)s), at(%(answered)s), at(%(resolved)s), %(leader)s, at(%(start)s),
  at(%(start)s))
returning id
"""


async def incident(
    api: Api,
    path: str,
    start: int,
    answered: int | None = None,
    resolved: int | None = None,
    *,
    monitor: int | None = None,
    leader: int | None = None,
) -> int:
    """Inserts an incident of the service or of a monitor, with the times after its start, in µs."""
    async with api.pool.transaction("incident") as tx:
        row = await tx.row(
            "select org, project, id from services where uid = %(uid)s", uid=uid_of(path)
        )
        assert row is not None
        key: int = await tx.value(
            _INSERT,
            org=row[0],
            project=row[1],
            service=row[2] if monitor is None else None,
            monitor=monitor,
            status="investigating" if resolved is None else "resolved",
            start=start,
            answered=None if answered is None else start + answered,
            resolved=None if resolved is None else start + resolved,
            leader=leader,
        )
    return key


async def governs(api: Api, revision: int, at: int) -> None:
    """Moves the start of a revision into the past."""
    query = "update service_revisions set governs_from = at(%(at)s) where revision = %(revision)s"
    async with api.pool.transaction("govern") as tx:
        await tx.execute(query, at=at, revision=revision)


async def times(api: Api, path: str, status: int = 200, **query: str) -> Any:
    query = {**RANGE, **query}
    return await call(
        api, "GET", f"{path}/response-times", query=query, status=status, who="viewer"
    )


async def test_a_time_that_no_incident_has_is_withheld_with_its_reason(api: Api) -> None:
    path = await new(api, "checkout")
    said = await times(api, path)
    assert said == {
        "service_id": uid_of(path),
        **RANGE,
        "as_of": RANGE["to"],
        "incidents": 0,
        "covered": 0,
        "open": 0,
        "unacknowledged": 0,
        "deleted_monitors": 0,
        "time_to_acknowledge_withheld": "no_incidents",
        "time_to_resolve_withheld": "no_incidents",
    }
    await incident(api, path, FROM)
    said = await times(api, path)
    assert (said["incidents"], said["open"], said["unacknowledged"]) == (1, 1, 1)
    assert said["time_to_acknowledge_withheld"] == "none_acknowledged"
    assert said["time_to_resolve_withheld"] == "none_resolved"
    await incident(api, path, FROM, resolved=HOUR)
    said = await times(api, path)
    hour = dict.fromkeys(("mean_us", "median_us", "p90_us", "longest_us"), HOUR)
    assert said["time_to_resolve"] == {"count": 1, **hour}
    assert "time_to_resolve_withheld" not in said
    assert said["time_to_acknowledge_withheld"] == "none_acknowledged"


async def test_a_range_has_the_incidents_that_start_in_it(api: Api) -> None:
    path = await new(api, "checkout")
    for start in (FROM - 1, FROM, FROZEN_NOW - 1, FROZEN_NOW):
        await incident(api, path, start)
    assert (await times(api, path))["incidents"] == 2
    assert (await times(api, path, to=to_text(Instant(FROM + SECOND))))["incidents"] == 1
    early = to_text(Instant(FROZEN_NOW - 366 * DAY - SECOND))
    for wrong in ({"from": early}, {"to": RANGE["from"]}, {"from": "yesterday"}):
        await times(api, path, 400, **wrong)


async def test_an_incident_of_a_monitor_counts_while_it_is_a_member(api: Api) -> None:
    path = await declared(api, members=2)
    first, second = await api.rows("select id, uid from monitors order by id")
    await governs(api, 1, FROZEN_NOW - 20 * DAY)
    # The second monitor leaves ten days ago.
    await call(api, "PUT", f"{path}/declaration", document(first[1], revision=1))
    await governs(api, 2, FROZEN_NOW - 10 * DAY)
    other = await api.new_monitor()
    for days in (25, 15, 5):
        start = FROZEN_NOW - days * DAY
        await incident(api, path, start, answered=days * SECOND, resolved=DAY, monitor=first[0])
        await incident(api, path, start, answered=100 + days, monitor=second[0])
        await incident(api, path, start, answered=1, monitor=other.id)
    said = await times(api, path)
    assert (said["incidents"], said["open"]) == (3, 1)
    assert said["time_to_acknowledge"]["longest_us"] == 15 * SECOND
    assert said["time_to_acknowledge"]["count"] == 3


async def test_consecutive_terms_of_a_member_count_an_incident_once(api: Api) -> None:
    path = await declared(api, members=2)
    ((key, uid), (other, _)) = await api.rows("select id, uid from monitors order by id")
    for revision in (1, 2):
        await call(api, "PUT", f"{path}/declaration", document(uid, revision=revision))
    for revision, days in ((1, 20), (2, 10), (3, 5)):
        await governs(api, revision, FROZEN_NOW - days * DAY)
    for days in (40, 20, 15, 10, 5, 1):
        await incident(api, path, FROZEN_NOW - days * DAY, monitor=key)
        await incident(api, path, FROZEN_NOW - days * DAY, monitor=other)
    # The other one was a member for ten days.
    assert (await times(api, path))["incidents"] == 5 + 2


async def test_the_answer_states_that_members_were_deleted(api: Api) -> None:
    path = await declared(api, members=2)
    first, second = await api.rows("select id, uid from monitors order by id")
    await governs(api, 1, FROZEN_NOW - 20 * DAY)
    await call(api, "PUT", f"{path}/declaration", document(first[1], revision=1))
    await governs(api, 2, FROZEN_NOW - 10 * DAY)
    for monitor in (first, second):
        await incident(api, path, FROZEN_NOW - 15 * DAY, resolved=HOUR, monitor=monitor[0])
    said = await times(api, path)
    assert (said["incidents"], said["deleted_monitors"]) == (2, 0)
    await call(api, "DELETE", f"/monitors/{second[1]}", None, 204)
    said = await times(api, path)
    assert (said["incidents"], said["deleted_monitors"]) == (1, 1)
    later = await times(api, path, 200, **{"from": to_text(Instant(FROZEN_NOW - 10 * DAY))})
    assert later["deleted_monitors"] == 0
    page = await text_of(await api.ask("viewer", "GET", f"/services/{uid_of(path)}"))
    assert "without those of 1 deleted monitor" in page


@pytest.mark.parametrize(
    ("bound", "reason"),
    [
        ("INCIDENTS_MOST", "too_many_incidents"),
        ("REVISIONS_MOST", "too_many_revisions"),
        ("TERMS_MOST", "too_many_revisions"),
    ],
)
async def test_too_much_to_compute_is_withheld_and_the_screen_answers(
    api: Api, monkeypatch: pytest.MonkeyPatch, bound: str, reason: str
) -> None:
    path = await declared(api, members=2)
    await governs(api, 1, FROZEN_NOW - 20 * DAY)
    ((key, uid), _) = await api.rows("select id, uid from monitors order by id")
    await call(api, "PUT", f"{path}/declaration", document(uid, revision=1))
    await governs(api, 2, FROZEN_NOW - 10 * DAY)
    for days in (1, 2):
        await incident(api, path, FROZEN_NOW - days * DAY, monitor=key)
    monkeypatch.setattr(response_times, bound, 2)
    assert (await times(api, path))["incidents"] == 2
    monkeypatch.setattr(response_times, bound, 1)
    said = await times(api, path)
    assert said["incidents_withheld"] == reason
    assert said["time_to_resolve_withheld"] == reason
    assert "incidents" not in said
    page = await text_of(await api.ask("viewer", "GET", f"/services/{uid_of(path)}"))
    assert "Too many" in page


@pytest.mark.parametrize("seed", range(2))
async def test_the_times_are_those_of_a_model(api: Api, seed: int) -> None:
    path, chance = await declared(api), random.Random(seed)
    ((monitor,),) = await api.rows("select id from monitors")
    await governs(api, 1, FROM - DAY)
    answers, ends, covered = [], [], 0
    leaders: list[int | None] = [None]
    many = 40
    for _ in range(many):
        start = chance.randrange(FROM, FROZEN_NOW)
        # The clock of a sender can be ahead of the answer.
        answered = chance.choice([None, chance.randrange(-SECOND, 3 * HOUR)])
        resolved = chance.choice([None, chance.randrange(5 * MINUTE, DAY)])
        of = chance.choice([None, monitor])
        leader = chance.choice(leaders) if of is None else None
        key = await incident(api, path, start, answered, resolved, monitor=of, leader=leader)
        if of is None:
            leaders.append(key)
        answers += [] if answered is None else [max(answered, 0)]
        ends += [] if resolved is None else [resolved]
        covered += leader is not None and answered is None
    said = await times(api, path)
    assert (said["incidents"], said["open"], said["covered"]) == (many, many - len(ends), covered)
    assert said["unacknowledged"] == many - covered - len(answers)
    for figure, found in (("time_to_acknowledge", answers), ("time_to_resolve", ends)):
        assert said[figure] == {
            "count": len(found),
            "mean_us": pytest.approx(statistics.fmean(found), abs=1),
            "median_us": statistics.median_low(found),
            "p90_us": sorted(found)[-(-len(found) * 9 // 10) - 1],
            "longest_us": max(found),
        }


async def test_the_screen_has_the_times_of_the_api(api: Api) -> None:
    path = await new(api, "checkout")
    for days, answered in ((1, MINUTE), (5, 2 * MINUTE), (20, 50 * MINUTE)):
        await incident(api, path, FROZEN_NOW - days * DAY, answered, resolved=2 * answered)
    for range_, days in (("7d", 7), ("30d", 30)):
        since = {"from": to_text(Instant(FROZEN_NOW - days * DAY))}
        said = await times(api, path, 200, **since)
        answer = await api.ask(
            "viewer", "GET", f"/services/{uid_of(path)}", query={"answers": range_}
        )
        page = await text_of(answer)
        shown = page[page.index('id="answers"') : page.index('id="revisions-title"')]
        for figure in ("time_to_acknowledge", "time_to_resolve"):
            assert f"<b>{duration(said[figure]['median_us'])}</b>" in shown
            assert f"median of {said[figure]['count']} incidents" in shown
