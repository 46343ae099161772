"""The route with which agents report certificates, and the way to the API of monitors."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from leadline.http.auth.passwords import Passwords
from leadline.probes.jobs.agent_protocol import CERTIFICATES, CERTIFICATES_MOST
from leadline.storage.core.instant import DAY, MINUTE, SECOND, Instant, to_text
from leadline.storage.monitors.rows import MonitorRow
from tests.support.app.edge import CORE_TOKEN, Edge, open_edge, other


@pytest.fixture
async def edge(dsn: str, passwords: Passwords) -> AsyncIterator[Edge]:
    async with open_edge(dsn, passwords) as made:
        yield made


def seen(edge: Edge, row: MonitorRow, days: int | None = 10, **given: Any) -> dict[str, Any]:
    now = edge.clock.now
    ends = {} if days is None else {"ends_at": to_text(Instant(now + days * DAY))}
    fields = {"monitor_id": str(row.uid), "revision": row.revision, "seen_at": to_text(now)}
    return fields | ends | given


async def bring(edge: Edge, *items: dict[str, Any], **given: Any) -> Any:
    path = f"certificates?region={given.pop('region', 'eu')}"
    return await edge.ask("POST", path, {"certificates": list(items)}, **given)


async def shown(edge: Edge, row: MonitorRow) -> dict[str, Any]:
    answer = await edge.api.ask("global_admin", "GET", f"/api/v1/monitors/{row.uid}")
    found = await answer.get_json()
    return {name: value for name, value in found.items() if name.startswith("certificate_")}


async def test_a_reported_certificate_is_shown_with_its_instants(edge: Edge) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    assert await shown(edge, row) == {"certificate_unknown_reason": "not_seen"}
    assert await bring(edge, seen(edge, row)) == {"accepted": 1}
    now = edge.clock.now
    assert await shown(edge, row) == {
        "certificate_expires_at": to_text(Instant(now + 10 * DAY)),
        "certificate_seen_at": to_text(now),
    }


@pytest.mark.parametrize(
    ("stated", "text"),
    [
        ("9999-12-31T23:59:59-12:00", "9999-12-31T23:59:59.000Z"),
        ("0001-01-01T00:00:00+12:00", "0001-01-01T00:00:00.000Z"),
    ],
)
async def test_an_end_beyond_all_instants_is_the_last_or_the_first(
    edge: Edge, stated: str, text: str
) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    assert await bring(edge, seen(edge, row, ends_at=stated)) == {"accepted": 1}
    assert (await shown(edge, row))["certificate_expires_at"] == text


async def test_a_target_without_tls_states_the_reason(edge: Edge) -> None:
    row = await edge.monitor(type="http", target="http://shop.example/")
    await bring(edge, seen(edge, row, None))
    assert await shown(edge, row) == {"certificate_unknown_reason": "no_tls"}
    push = await edge.monitor(type="icmp", target="shop.example")
    assert await shown(edge, push) == {}


async def test_other_regions_revisions_and_monitors_are_left_out(edge: Edge) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    ahead = to_text(Instant(edge.clock.now + 61 * SECOND))
    items = [
        seen(edge, row, revision=row.revision + 1),
        seen(edge, row, revision=0),
        seen(edge, row, monitor_id=other(row.uid)),
        seen(edge, row, seen_at=ahead),
    ]
    assert await bring(edge, *items) == {"accepted": 0}
    found = await bring(edge, seen(edge, row), region="core", token=CORE_TOKEN)
    assert found == {"accepted": 0}
    assert await shown(edge, row) == {"certificate_unknown_reason": "not_seen"}


async def test_the_report_of_another_organization_changes_only_its_monitor(edge: Edge) -> None:
    rows = [
        await edge.monitor(project=project, type="http", target="https://shop.example/")
        for project in ("acme/shop", "other/shop")
    ]
    assert await bring(edge, *(seen(edge, row) for row in rows)) == {"accepted": 2}
    assert await edge.api.rows("select count(*) from monitor_certificates") == [(2,)]
    assert await bring(edge, seen(edge, rows[0], 5)) == {"accepted": 1}
    assert len({str(await shown(edge, row)) for row in rows}) == 2


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"ends_at": "soon"}, "[0].ends_at"),
        ({"revision": -1}, "[0].revision"),
        ({"seen_at": 5}, "[0].seen_at"),
        ({"subject": "shop"}, "invalid JSON body"),
    ],
)
async def test_a_malformed_report_is_refused(
    edge: Edge, change: dict[str, Any], error: str
) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    refused = await bring(edge, seen(edge, row, **change), status=400)
    assert error in refused["error"]


async def test_the_number_of_certificates_is_bounded(edge: Edge) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    items = [seen(edge, row)] * (CERTIFICATES_MOST + 1)
    refused = await bring(edge, *items, status=400)
    assert refused["error"].startswith("certificates")
    assert await bring(edge, *items[1:]) == {"accepted": CERTIFICATES_MOST}


async def test_many_certificates_of_a_monitor_leave_a_bounded_row(edge: Edge) -> None:
    row = await edge.monitor(type="http", target="https://shop.example/")
    await bring(edge, *(seen(edge, row, days) for days in range(1, 300)))
    ((count,),) = await edge.api.rows("select jsonb_array_length(seen) from monitor_certificates")
    assert count == 8
    now = to_text(edge.clock.now)
    ahead = to_text(Instant(edge.clock.now + MINUTE // 2))
    await bring(edge, seen(edge, row, 1, seen_at=ahead))
    assert (await shown(edge, row))["certificate_seen_at"] == now


async def test_a_server_states_that_it_accepts_certificates(edge: Edge) -> None:
    assert (await edge.declare())["accepts"] == [CERTIFICATES]
