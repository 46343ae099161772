"""The alerting settings of a service, its objectives and its burn rules."""

from typing import Any

import pytest

from tests.support.app.cast import Api
from tests.support.app.serving import audited, call, document, new, refused

USUAL = {
    "owns_paging": False,
    "page_on": ["down"],
    "page_on_unknown": False,
    "confirm_evaluations": 2,
    "renotify_seconds": 0,
}
PAGE = {
    "long_window_seconds": 3_600,
    "short_window_seconds": 300,
    "threshold": 14.4,
    "severity": "page",
}
TICKET = {
    "long_window_seconds": 21_600,
    "short_window_seconds": 1_800,
    "threshold": 6.0,
    "severity": "ticket",
}


async def generation(api: Api) -> int:
    ((found,),) = await api.rows("select generation from service_alerting")
    return int(found)


async def test_alerting_settings_are_edited_field_by_field(api: Api) -> None:
    path = await new(api, "checkout")
    assert await call(api, "GET", f"{path}/alerting", who="viewer") == USUAL
    edits: list[dict[str, Any]] = [
        {"owns_paging": True},
        {"page_on": ["degraded", "down", "down"]},
        {"page_on_unknown": True, "confirm_evaluations": 10},
        {"renotify_seconds": 60},
        {"renotify_seconds": 86_400},
        {"renotify_seconds": 0, "page_on": []},
    ]
    now = dict(USUAL)
    for edit in edits:
        now.update(edit)
        if len(edit.get("page_on", ())) == 3:
            now["page_on"] = ["down", "degraded"]
        assert await call(api, "PATCH", f"{path}/alerting", edit) == now
    assert await call(api, "GET", f"{path}/alerting") == now
    assert (await call(api, "GET", path))["alerting"] == now
    told_of = [target.rpartition("alerting ")[2] for _, target in (await audited(api))[1:]]
    assert told_of == [
        "owns_paging",
        "page_on",
        "page_on_unknown confirm_evaluations",
        "renotify_seconds",
        "renotify_seconds",
        "page_on renotify_seconds",
    ]


async def test_an_edit_of_the_settings_raises_the_generation(api: Api) -> None:
    path = await new(api, "checkout")
    before = await generation(api)
    await call(api, "PATCH", f"{path}/alerting", {"owns_paging": True})
    assert await generation(api) == before + 1
    # Equal values and an empty body do not count as an edit.
    for same in ({"owns_paging": True}, {"page_on": ["down"]}, {}):
        await call(api, "PATCH", f"{path}/alerting", same)
    assert await generation(api) == before + 1
    assert len(await audited(api)) == 2
    # The evaluator reads the reminder interval at each evaluation.
    await call(api, "PATCH", f"{path}/alerting", {"renotify_seconds": 60})
    assert await generation(api) == before + 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"confirm_evaluations": 0}, "confirm_evaluations: "),
        ({"confirm_evaluations": 11}, "confirm_evaluations: "),
        ({"renotify_seconds": -1}, "renotify_seconds: "),
        ({"renotify_seconds": 1}, "renotify_seconds: must be 0, or 60 to 86400"),
        ({"renotify_seconds": 59}, "renotify_seconds: must be 0, or 60 to 86400"),
        ({"renotify_seconds": 86_401}, "renotify_seconds: "),
        ({"page_on": None}, "page_on: "),
        ({"page_on": ["healthy"]}, "page_on"),
        ({"owns_paging": "yes"}, "owns_paging: "),
        ({"generation": 1}, "invalid JSON body"),
    ],
)
async def test_a_value_out_of_bounds_is_refused_with_its_field(
    api: Api, body: dict[str, Any], field: str
) -> None:
    path = await new(api, "checkout")
    assert (await refused(api, "PATCH", f"{path}/alerting", body, 400)).startswith(field)
    assert await call(api, "GET", f"{path}/alerting") == USUAL


async def test_an_objective_is_rounded_half_up_to_four_decimals(api: Api) -> None:
    path = await new(api, "checkout")
    where = f"{path}/sla-target"
    for objective, kept in ((99.9, 99.9), (99.99985, 99.9999), (99, 99), (0.00005, 0.0001)):
        said = await call(api, "PUT", where, {"objective": objective})
        assert said == {"window": "30d", "objective": kept}
    assert await call(api, "PUT", where, {"window": "7d", "objective": 95}) == {
        "window": "7d",
        "objective": 95,
    }
    detail = await call(api, "GET", path, who="viewer")
    shown = [(t["window"], t["objective"]) for t in detail["sla_targets"]]
    assert shown == [("7d", 95), ("30d", 0.0001)]
    before = await audited(api)
    await call(api, "PUT", where, {"window": "7d", "objective": 95.00001})
    assert await audited(api) == before


@pytest.mark.parametrize(
    "body",
    [
        {"objective": 0},
        {"objective": 100},
        {"objective": -1},
        {"objective": 99.99995},
        {"objective": 0.00004},
        {"objective": "99"},
        {},
        {"objective": 99, "window": "1h"},
        {"objective": 99, "burn_alert": True},
        {"objective": 99, "burn_alert_enabled": True},
        {"objective": 99, "burn_rules": []},
    ],
)
async def test_an_invalid_objective_is_refused(api: Api, body: dict[str, Any]) -> None:
    path = await new(api, "checkout")
    await refused(api, "PUT", f"{path}/sla-target", body, 400)
    assert (await call(api, "GET", path))["sla_targets"] == []


async def test_burn_rules_default_to_two(api: Api) -> None:
    path = await new(api, "checkout")
    where = f"{path}/sla-target/burn-alerting"
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.9})
    said = await call(api, "PUT", where, {"burn_alert_enabled": True})
    assert said == {"window": "30d", "burn_alert_enabled": True, "burn_rules": [PAGE, TICKET]}
    mine = {**PAGE, "threshold": 2.00005}
    body = {"burn_alert_enabled": False, "burn_rules": [mine]}
    said = await call(api, "PUT", where, body)
    kept = {**PAGE, "threshold": 2.0001}
    assert said == {"window": "30d", "burn_alert_enabled": False, "burn_rules": [kept]}
    said = await call(api, "PUT", where, {"burn_alert_enabled": True, "burn_rules": []})
    assert said["burn_rules"] == []


async def test_burn_alerting_needs_an_objective_for_its_window(api: Api) -> None:
    path = await new(api, "checkout")
    where = f"{path}/sla-target/burn-alerting"
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.9, "window": "7d"})
    body = {"burn_alert_enabled": True}
    assert await refused(api, "PUT", where, body, 404) == "not_found"
    await call(api, "PUT", where, {**body, "window": "7d"})
    assert await api.rows('select distinct "window" from burn_rules') == [("7d",)]


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        ({"short_window_seconds": 299}, "burn_rules[0].short_window_seconds: must be at least 300"),
        ({"long_window_seconds": 300}, "burn_rules[0].long_window_seconds: must be above"),
        ({"long_window_seconds": 604_801}, "burn_rules[0].long_window_seconds: must be at most"),
        ({"long_window_seconds": 10**18}, "burn_rules[0].long_window_seconds: must be at most"),
        ({"threshold": 0}, "burn_rules[0].threshold: must be above 0"),
        ({"threshold": 0.00001}, "burn_rules[0].threshold: must be above 0"),
        ({"threshold": 1e300}, "burn_rules[0].threshold: must be at most"),
        ({"severity": "mail"}, "burn_rules[0].severity: "),
        ({"firing": True}, "invalid JSON body"),
    ],
)
async def test_an_invalid_burn_rule_is_refused_with_its_field(
    api: Api, rule: dict[str, Any], field: str
) -> None:
    path = await new(api, "checkout")
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.9})
    where = f"{path}/sla-target/burn-alerting"
    body = {"burn_alert_enabled": True, "burn_rules": [{**PAGE, **rule}]}
    assert (await refused(api, "PUT", where, body, 400)).startswith(field)
    five = {"burn_alert_enabled": True, "burn_rules": [PAGE] * 5}
    assert await refused(api, "PUT", where, five, 400) == (
        "burn_rules: must have at most 4 entries"
    )
    assert await api.rows("select from burn_rules") == []


async def test_an_unchanged_rule_keeps_firing_and_a_changed_one_restarts(api: Api) -> None:
    path = await new(api, "checkout")
    await call(api, "PUT", f"{path}/sla-target", {"objective": 99.9})
    where = f"{path}/sla-target/burn-alerting"
    await call(api, "PUT", where, {"burn_alert_enabled": True})
    async with api.pool.transaction("fire") as tx:
        await tx.execute(
            "update burn_rules set firing = true, notified_at = at(%(now)s)", now=tx.now
        )
    changed = {**TICKET, "threshold": 5.0}
    said = await call(
        api, "PUT", where, {"burn_alert_enabled": True, "burn_rules": [changed, TICKET, PAGE]}
    )
    assert said["burn_rules"] == [changed, TICKET, PAGE]
    assert await api.rows(
        "select place, threshold::float, firing, notified_at is null from burn_rules order by place"
    ) == [(0, 5.0, False, True), (1, 6.0, True, False), (2, 14.4, True, False)]


async def test_the_alerting_state_has_a_reason(api: Api) -> None:
    path = await new(api, "checkout")
    where = f"{path}/alerting/state"
    nobody = {"armed": False, "reason": "no_owning_service"}
    assert await call(api, "GET", where, who="viewer") == {"live": nobody, "burn": nobody}
    await call(api, "PATCH", f"{path}/alerting", {"owns_paging": True})
    said = await call(api, "GET", where)
    assert said == (await call(api, "GET", path))["alerting_state"]
    assert said["live"]["armed"] is False
    assert said["live"]["reason"] == "no_governing_revision"
    await call(api, "PATCH", f"{path}/alerting", {"page_on": []})
    await call(api, "PUT", f"{path}/declaration", document((await api.new_monitor()).uid))
    async with api.pool.transaction("govern") as tx:
        await tx.execute("update service_revisions set governs_from = at(%(now)s)", now=tx.now)
    assert (await call(api, "GET", where))["live"]["reason"] == "policy_pages_nothing"


async def test_a_monitor_names_its_paging_service_or_the_reason(api: Api) -> None:
    monitor = (await api.new_monitor()).uid
    where = f"/monitors/{monitor}"
    alone = {"delegated": False, "reason": "no_owning_service"}
    assert (await call(api, "GET", where))["delegation"] == {"live": alone, "burn": alone}
    path = await new(api, "checkout")
    await call(api, "PUT", f"{path}/declaration", document(monitor))
    assert (await call(api, "GET", where))["delegation"]["live"] == alone
    await call(api, "PATCH", f"{path}/alerting", {"owns_paging": True})
    # The service owns paging, and its declaration does not govern yet.
    live = (await call(api, "GET", where))["delegation"]["live"]
    assert (live["delegated"], live["reason"]) == (False, "no_governing_revision")
    (listed,) = await call(api, "GET", f"/projects/{api.project}/monitors", who="viewer")
    assert listed["delegation"]["live"] == live
