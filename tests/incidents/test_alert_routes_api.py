"""Routing of external alerts: order, default, unrouted alerts, test on a sample, and deletion."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from leadline.storage.incidents.rules.alert_route import ROUTES_MOST
from tests.support.app.cast import Api
from tests.support.app.serving import call

from .test_alertmanager_api import alert, incidents, payload, send


def path_of(api: Api) -> str:
    return f"/projects/{api.project}/alert-routes"


def route(matchers: str, policy: UUID) -> dict[str, str]:
    return {"matchers": matchers, "escalation_policy_id": str(policy)}


async def started(api: Api) -> list[tuple[str, UUID | None, UUID | None]]:
    """Returns (fingerprint, policy, service) of the incidents."""
    return await api.rows(
        "select i.external_key, p.uid, s.uid from incidents i"
        " left join escalation_policies p on p.org = i.org and p.id = i.escalation_policy"
        " left join services s on s.org = i.org and s.id = i.service order by i.id"
    )


async def test_the_first_matching_route_or_the_default_starts_its_policy(api: Api) -> None:
    first, second, third = [await api.new_policy() for _ in range(3)]
    service = await api.new_service(escalation_policy=str(third))
    body = {
        "routes": [
            route('team="shop", severity=~"page|critical"', first),
            {"matchers": 'team="shop"', "service_id": str(service)},
        ],
        "default": {"escalation_policy_id": str(second)},
    }
    assert await call(api, "PUT", path_of(api), body) == body
    assert await call(api, "GET", path_of(api), who="viewer") == body
    labels = [
        {"team": "shop", "severity": "page"},
        {"team": "shop", "severity": "warning"},
        {"team": "other"},
    ]
    alerts = [alert(f"f{n}", labels=found) for n, found in enumerate(labels)]
    await send(api, payload(*alerts))
    assert await started(api) == [
        ("f0", first, None),
        ("f1", third, service),
        ("f2", second, None),
    ]
    assert all("unrouted" not in one for one in await incidents(api))
    audited = await api.rows("select target from audit_entries where action like 'project.al%%'")
    assert audited == [(f"project:{api.project} routes=2 default=true",)]
    # Equal routes are not written.
    await call(api, "PUT", path_of(api), body)
    assert len(await api.rows("select 1 from audit_entries where action like 'project.al%%'")) == 1


async def test_an_alert_without_a_route_is_unrouted(api: Api) -> None:
    policy = await api.new_policy()
    await send(api, payload(alert("before")))
    await call(api, "PUT", path_of(api), {"routes": [route("team=shop", policy)]})
    await send(api, payload(alert("after"), alert("routed", labels={"team": "shop"})))
    found = {one["external_key"]: one for one in await incidents(api)}
    assert [found[key].get("unrouted") for key in ("before", "after", "routed")] == [
        True,
        True,
        None,
    ]
    by_hand = await api.new_incident()
    assert "unrouted" not in await call(api, "GET", f"/incidents/{by_hand}")
    page = await (await api.ask("viewer", "GET", f"/incidents/{found['after']['id']}")).get_data(
        as_text=True
    )
    assert "Unrouted" in page


@pytest.mark.parametrize(
    ("labels", "outcome", "matching", "index"),
    [
        ({"team": "shop"}, "route", [False, True], 1),
        ({"team": "shop", "severity": "page"}, "route", [True, True], 0),
        ({}, "unrouted", [False, False], None),
    ],
)
async def test_a_sample_shows_the_decision_and_saves_nothing(
    api: Api, labels: dict[str, str], outcome: str, matching: list[bool], index: int | None
) -> None:
    policy = await api.new_policy()
    routes = [route("severity=page", policy), route("team=shop", policy)]
    body = {"routes": routes, "labels": labels}
    found = await call(api, "POST", f"{path_of(api)}/test", body)
    chosen = {} if index is None else {"route": index}
    assert found == {"outcome": outcome, "matching": matching, **chosen}
    if index is None:
        body["default"] = {"escalation_policy_id": str(policy)}
        found = await call(api, "POST", f"{path_of(api)}/test", body)
        assert found["outcome"] == "default"
    assert await call(api, "GET", path_of(api)) == {"routes": [], "default": None}


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"routes": [{"matchers": "team"}]}, "routes[0].matchers"),
        ({"routes": [{"matchers": "a=b"}]}, "routes[0].service_id"),
        (
            {"routes": [{"matchers": "a=b", "escalation_policy_id": str(uuid4())}]},
            "routes[0].escalation_policy_id",
        ),
        ({"default": {"service_id": str(uuid4())}}, "default.service_id"),
        ({"default": {}}, "default.service_id"),
    ],
)
async def test_a_wrong_route_is_refused_with_its_field(
    api: Api, given: dict[str, Any], field: str
) -> None:
    refused = await call(api, "PUT", path_of(api), given, 400)
    assert refused["error"].startswith(f"{field}: ")


async def test_a_service_without_a_policy_and_too_many_routes_are_refused(api: Api) -> None:
    service = await api.new_service()
    body = {"routes": [{"matchers": "a=b", "service_id": str(service)}]}
    refused = await call(api, "PUT", path_of(api), body, 400)
    assert "without an escalation policy" in refused["error"]
    policy = await api.new_policy()
    many = {"routes": [route("a=b", policy)] * (ROUTES_MOST + 1)}
    await call(api, "PUT", path_of(api), many, 400)


async def test_a_policy_of_a_route_stays_and_a_deleted_service_leaves_its_alerts_unrouted(
    api: Api,
) -> None:
    policy, other = await api.new_policy(), await api.new_policy()
    service = await api.new_service(escalation_policy=str(other))
    routes = [
        {"matchers": "team=shop", "service_id": str(service)},
        route('team=~".*"', policy),
    ]
    await call(api, "PUT", path_of(api), {"routes": routes})
    refused = await call(api, "DELETE", f"/escalation-policies/{policy}", status=409)
    assert refused == {"error": "in_use"}
    await call(api, "DELETE", f"/projects/{api.project}/services/{service}", status=204)
    shown = await call(api, "GET", path_of(api))
    assert shown["routes"][0] == {"matchers": 'team="shop"'}
    await send(api, payload(alert(labels={"team": "shop"})))
    assert (await incidents(api))[0]["unrouted"] is True


async def test_an_incident_by_hand_starts_the_policy_that_it_names(api: Api) -> None:
    policy = await api.new_policy()
    body = {"title": "It burns", "escalation_policy_id": str(policy)}
    made = await call(api, "POST", f"/projects/{api.project}/incidents", body, 201)
    rows = await api.rows(
        "select p.uid, i.escalate_at is not null from incidents i"
        " join escalation_policies p on p.org = i.org and p.id = i.escalation_policy"
    )
    assert rows == [(policy, True)]
    assert "unrouted" not in made
    body["escalation_policy_id"] = str(uuid4())
    refused = await call(api, "POST", f"/projects/{api.project}/incidents", body, 400)
    assert refused["error"].startswith("escalation_policy_id: ")


async def test_a_muted_alert_opens_its_incident_and_starts_no_step(api: Api) -> None:
    policy = await api.new_policy()
    await call(api, "PUT", path_of(api), {"routes": [route("team=shop", policy)]})
    await api.new_mute(matchers='team="shop", alertname="HighErrors"')
    await send(api, payload(alert(labels={"team": "shop", "alertname": "HighErrors"})))
    ((uid,),) = await api.rows("select uid from incidents")
    (found,) = await call(api, "GET", f"/incidents/{uid}/mutes")
    assert found["matchers"] == 'team="shop", alertname="HighErrors"'
