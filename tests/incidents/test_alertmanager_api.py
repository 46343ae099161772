"""Alerts of another system, against a model: firing opens, resolved ends, the rest is counted."""

from typing import Any

import msgspec
import pytest
import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.http.auth.passwords import Passwords
from leadline.storage.core.instant import SECOND, Instant, to_text
from leadline.storage.engine.pools import open_pool
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api, open_api

TOKEN = "shop_token"


def alert(key: str = "f1", status: str = "firing", **given_: Any) -> dict[str, Any]:
    """As Alertmanager 0.25 writes one."""
    return {
        "status": status,
        "labels": {"alertname": "HighErrors", "severity": "page", "instance": "a"},
        "annotations": {"summary": "Errors are high", "description": "5 % of answers\nare 500."},
        "startsAt": to_text(Instant(FROZEN_NOW - 60 * SECOND)),
        "endsAt": "0001-01-01T00:00:00Z" if status == "firing" else to_text(FROZEN_NOW),
        "generatorURL": "http://prometheus.test/graph",
        "fingerprint": key,
        **given_,
    }


def payload(*alerts: dict[str, Any], **given_: Any) -> dict[str, Any]:
    return {
        "receiver": "leadline",
        "status": "firing",
        "alerts": list(alerts),
        "groupLabels": {},
        "commonLabels": {},
        "commonAnnotations": {},
        "externalURL": "http://alertmanager.test",
        "version": "4",
        "groupKey": "{}:{}",
        "truncatedAlerts": 0,
        **given_,
    }


async def send(api: Api, body: Any, status: int = 200, who: str = TOKEN) -> Any:
    path = f"/api/v1/projects/{api.project}/alerts/alertmanager"
    answer = await api.ask(who, "POST", path, body)
    found = await answer.get_json()
    assert answer.status_code == status, found
    return found


async def incidents(api: Api) -> Any:
    path = f"/api/v1/projects/{api.project}/incidents"
    return await (await api.ask("viewer", "GET", path)).get_json()


async def test_an_alert_opens_an_incident_and_its_end_closes_it(api: Api) -> None:
    counts = {"opened": 0, "resolved": 0, "ignored": 0, "truncated": 0}
    assert await send(api, payload(alert())) == {**counts, "opened": 1}
    (made,) = await incidents(api)
    assert made["title"] == "Errors are high"
    assert (made["source"], made["impact"], made["external_key"]) == ("api", "major", "f1")
    assert made["started_at"] == "2026-01-04T23:59:00.000Z"
    updates = await (
        await api.ask("viewer", "GET", f"/api/v1/incidents/{made['id']}/updates")
    ).get_json()
    assert updates[0]["body"] == "5 % of answers\nare 500."
    assert await send(api, payload(alert())) == {**counts, "ignored": 1}
    assert await send(api, payload(alert(status="resolved"))) == {**counts, "resolved": 1}
    assert await send(api, payload(alert(status="resolved"))) == {**counts, "ignored": 1}
    assert [i["status"] for i in await incidents(api)] == ["resolved"]
    assert await send(api, payload(alert())) == {**counts, "opened": 1}
    assert len(await incidents(api)) == 2


async def test_changes_by_alerts_are_audited_as_changes_by_a_token(api: Api) -> None:
    await send(api, payload(alert(), alert("f2")))
    await send(api, payload(alert(), alert(status="resolved")))
    rows = await api.rows("select action, via_token, target from audit_entries order by id")
    ids = {i["external_key"]: i["id"] for i in await incidents(api)}
    assert rows == [
        ("incident.create", True, f"incident:{ids['f1']} project:{api.project}"),
        ("incident.create", True, f"incident:{ids['f2']} project:{api.project}"),
        ("incident.status", True, f"incident:{ids['f1']} investigating->resolved"),
    ]


@pytest.mark.parametrize(
    ("given_", "wanted"),
    [
        ({"annotations": {}}, {"title": "HighErrors"}),
        ({"annotations": None, "labels": None}, {"title": "Alert f1", "impact": "none"}),
        ({"annotations": {"summary": "a\nb\x07c"}}, {"title": "a b c"}),
        ({"annotations": {"summary": "x" * 5_000}}, {"title": "x" * 199 + "…"}),
        ({"labels": {"severity": "critical"}}, {"impact": "critical"}),
        ({"labels": {"severity": "warning"}}, {"impact": "minor"}),
        ({"labels": {"severity": "whatever"}}, {"impact": "none"}),
        ({"startsAt": "2031-01-01T00:00:00Z"}, {"started_at": to_text(FROZEN_NOW)}),
        ({"startsAt": "0001-01-01T00:00:00Z"}, {"started_at": to_text(FROZEN_NOW)}),
        (
            {"startsAt": "2026-01-04T12:00:00.123456789+02:00"},
            {"started_at": "2026-01-04T10:00:00.123Z"},
        ),
    ],
)
async def test_any_alert_becomes_an_incident(
    api: Api, given_: dict[str, Any], wanted: dict[str, Any]
) -> None:
    assert (await send(api, payload(alert(**given_))))["opened"] == 1
    (made,) = await incidents(api)
    assert {name: made[name] for name in wanted} == wanted


async def test_unknown_fields_are_ignored_and_truncated_alerts_reported(api: Api) -> None:
    body = payload(
        {**alert(), "silencedBy": ["x"], "new": {"deep": 1}}, truncatedAlerts=7, notYetThought=1
    )
    assert await send(api, body) == {"opened": 1, "resolved": 0, "ignored": 0, "truncated": 7}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (payload(version="3"), "version: "),
        ({"alerts": []}, "version: is required"),
        ({"version": "4"}, "alerts: is required"),
        (payload(alert(status="gone")), "alerts[0].status: "),
        (payload(alert(key=" ")), "alerts[0].fingerprint: must not be blank"),
        (payload(alert(), alert(key="x" * 201)), "alerts[1].fingerprint: must be at most 200"),
        (payload(alert(startsAt="yesterday")), "alerts[0].startsAt: must be an RFC 3339 instant"),
        (payload(alert(endsAt="2026-13-01T00:00:00Z")), "alerts[0].endsAt: "),
        (payload(*[alert()] * 1_001), "alerts: expected array of length <= 1000"),
        (payload(truncatedAlerts=-1), "truncatedAlerts: "),
    ],
)
async def test_an_invalid_payload_is_refused_completely(api: Api, body: Any, error: str) -> None:
    assert (await send(api, body, 400))["error"].startswith(error)
    assert await incidents(api) == []


async def test_a_late_resolution_does_not_resolve_a_newer_alert(api: Api) -> None:
    earlier = to_text(Instant(FROZEN_NOW - 3_600 * SECOND))
    await send(api, payload(alert()))
    late = alert(status="resolved", startsAt=earlier, endsAt=earlier)
    assert (await send(api, payload(late)))["ignored"] == 1
    unknown = alert(status="resolved", endsAt="0001-01-01T00:00:00Z")
    assert (await send(api, payload(unknown)))["resolved"] == 1


async def test_an_alert_with_an_effect_wakes_the_outbox_and_one_without_does_not(
    api: Api,
) -> None:
    woken: list[int] = []
    object.__setattr__(api.context, "on_told", lambda: woken.append(1))
    for status, calls in (("firing", 1), ("firing", 1), ("resolved", 2), ("resolved", 2)):
        await send(api, payload(alert(status=status)))
        assert len(woken) == calls


async def test_fingerprints_are_of_their_project(api: Api) -> None:
    await send(api, payload(alert()))
    path = f"/api/v1/projects/{api.projects['acme/mill'][1]}/alerts/alertmanager"
    answer = await api.ask("token", "POST", path, payload(alert(status="resolved")))
    assert (await answer.get_json())["ignored"] == 1
    assert [i["status"] for i in await incidents(api)] == ["investigating"]


async def test_equal_concurrent_alerts_of_two_senders_are_one_incident(api: Api) -> None:
    answers: list[Any] = []

    async def one() -> None:
        answers.append(await send(api, payload(*[alert(f"f{n}") for n in range(5)])))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(one)
    assert sum(a["opened"] for a in answers) == 5
    assert sum(a["ignored"] for a in answers) == 15
    assert len(await incidents(api)) == 5


# --- against a model ---

KEYS = ["a", "b"]
PAYLOADS = st.lists(
    st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(["firing", "resolved"])), max_size=5),
    max_size=6,
)


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(sent=PAYLOADS)
def test_any_sequence_of_alerts_has_the_result_of_the_contract(
    databases: Any, cast_template: str, passwords: Passwords, sent: list[list[tuple[str, str]]]
) -> None:
    dsn = databases.lend(cast_template)
    try:
        trio.run(_sequence, dsn, passwords, sent)
    finally:
        databases.give_back(dsn)


async def _sequence(dsn: str, passwords: Passwords, sent: list[list[tuple[str, str]]]) -> None:
    opened_ever = 0
    open_now: set[str] = set()
    async with (
        open_pool(dsn, name="test", size=4, clock=lambda: FROZEN_NOW) as pool,
        open_api(pool, FROZEN_NOW, passwords) as api,
    ):
        for alerts in sent:
            counts = {"opened": 0, "resolved": 0, "ignored": 0, "truncated": 0}
            for key, status in alerts:
                if status == "firing" and key not in open_now:
                    open_now.add(key)
                    opened_ever += 1
                    counts["opened"] += 1
                elif status == "resolved" and key in open_now:
                    open_now.remove(key)
                    counts["resolved"] += 1
                else:
                    counts["ignored"] += 1
            answer = await send(api, payload(*[alert(key, status) for key, status in alerts]))
            assert answer == counts
        found = await incidents(api)
        assert len(found) == opened_ever
        assert {i["external_key"] for i in found if i["status"] != "resolved"} == open_now


def test_the_payload_here_is_as_alertmanager_documents_it() -> None:
    """The names that its documentation lists, so that no test passes by a name of our own."""
    body = msgspec.json.decode(msgspec.json.encode(payload(alert())))
    assert set(body) == {
        *("version", "groupKey", "truncatedAlerts", "status", "receiver", "groupLabels"),
        *("commonLabels", "commonAnnotations", "externalURL", "alerts"),
    }
