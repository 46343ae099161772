"""Bundles of format 3 in the API: channels, schedules, escalation policies, routes, hours."""

import json
import random
from copy import deepcopy
from typing import Any

from leadline.storage.core.instant import HOUR, Instant, to_text
from leadline.storage.notifications.queries.channels import select_channel
from leadline.storage.notifications.transactions.channel_secrets import opened
from tests.bundles.test_bundles_api import TAKE, applied, ask, counted, export, release
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import call

SLACK = "https://hooks.example.org/services/T/B/one"
ANCHOR = "2026-01-05T08:00:00.000Z"
WEB: dict[str, Any] = {"name": "Web", "type": "http", "target": "https://shop.example.org/"}
OPS: dict[str, Any] = {"name": "Ops", "type": "slack", "config": {"url_ref": "slack"}}
MAIL: dict[str, Any] = {"type": "ntfy", "config": {"topic": "ops"}, "takes_tickets": True}
DAY: dict[str, Any] = {
    "name": "Day",
    "shift_seconds": "1d",
    "anchor_at": ANCHOR,
    "timezone": "Europe/Berlin",
    "participants": [{"person": "editor@example.test"}, {"channel": "ops"}],
    "layers": [
        {
            "name": "Night",
            "shift_seconds": 604_800,
            "anchor_at": ANCHOR,
            "participants": [{"channel": "Ops"}],
            "restrictions": [{"weekdays": ["mon", "fri"], "from": "22:00", "to": "06:00"}],
            "ends_at": "2027-01-01T00:00:00.000Z",
        }
    ],
}
NIGHT: dict[str, Any] = {
    "name": "Nights",
    "steps": [
        {"after_seconds": 0, "targets": [{"schedule": "day"}]},
        {"after_seconds": "10m", "targets": [{"policy": "all"}, {"channel": "ops"}]},
    ],
    "ack_timeout_seconds": 900,
}
ALL: dict[str, Any] = {
    "steps": [{"after_seconds": 0, "targets": [{"person": "editor@example.test"}]}]
}
HOURS = {
    "timezone": "Europe/Berlin",
    "windows": [{"weekdays": ["mon", "tue"], "from": "09:00", "to": "17:00"}],
}
WHOLE: dict[str, Any] = {
    "channels": {"ops": OPS, "mail": MAIL},
    "schedules": {"day": DAY},
    "escalation_policies": {"night": NIGHT, "all": ALL},
    "monitors": {"web": {**WEB, "escalation_policy": "night"}},
    "services": {
        "shop": {"escalation_policy": "night", "oncall_schedule": "day", "support_hours": HOURS}
    },
    "routes": {
        "rules": [
            {"matchers": 'team="shop"', "service": "shop"},
            {"matchers": 'team=~"a|b"', "escalation_policy": "all"},
        ],
        "default": {"escalation_policy": "night"},
    },
}


def bundle(**sections: Any) -> dict[str, Any]:
    return {"format": 3, "organization": "acme", "project": "shop", **sections}


async def prepare(api: Api, project: Any = None) -> str:
    """Creates the secrets of the bundles, and returns the address of the editor."""
    for name, value in (("slack", SLACK), ("other", f"{SLACK}2")):
        body = {"name": name, "value": value}
        await call(api, "POST", f"/projects/{project or api.project}/secrets", body, 201)
    rows = await api.rows("select email from users where uid = %(u)s", u=api.users["editor"][1])
    return str(rows[0][0])


def with_mail(sections: dict[str, Any], email: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(sections).replace("editor@example.test", email))
    return found


async def whole(api: Api) -> dict[str, Any]:
    return bundle(**with_mail(WHOLE, await prepare(api)))


async def listed(api: Api, what: str) -> dict[str, Any]:
    rows = await call(api, "GET", f"/projects/{api.project}/{what}")
    return {one["name"]: one for one in rows}


async def test_on_call_objects_come_change_and_become_orphans(api: Api) -> None:
    document = await whole(api)
    made = await applied(api, document)
    assert set(made.values()) == {"create"}
    assert len(made) == 8
    channels, policies = (
        await listed(api, "notification-channels"),
        await listed(api, "escalation-policies"),
    )
    assert channels["Ops"]["config"] == {"url_ref": "slack"}
    assert policies["Nights"]["ack_timeout_seconds"] == 900
    assert [one["type"] for one in policies["Nights"]["steps"][1]["targets"]] == [
        "policy",
        "channel",
    ]
    routes = await call(api, "GET", f"/projects/{api.project}/alert-routes")
    assert routes["default"]["escalation_policy_id"] == policies["Nights"]["id"]
    # All four change, and what is not named any more is left as it is.
    changed = deepcopy(document)
    changed["channels"] = {"ops": {**OPS, "name": "Shop ops", "config": {"url_ref": "other"}}}
    changed["schedules"]["day"]["layers"] = []
    changed["escalation_policies"]["night"]["steps"].pop()
    changed["routes"] = {"default": {"escalation_policy": "all"}}
    changed["services"]["shop"]["support_hours"] = {}
    assert await applied(api, changed) == {
        "ops": "update",
        "mail": "orphan",
        "day": "update",
        "night": "update",
        "all": "unchanged",
        "web": "unchanged",
        "shop": "update",
        "routes": "update",
    }
    channels = await listed(api, "notification-channels")
    assert channels["Shop ops"]["config"] == {"url_ref": "other"}
    assert channels["mail"]["enabled"] is True
    path = f"/notification-channels/{channels['mail']['id']}"
    await call(api, "PATCH", path, {"enabled": False})
    # An orphan that the bundle names again is the same channel.
    assert (await applied(api, document))["mail"] == "update"
    assert (await listed(api, "notification-channels"))["mail"]["id"] == channels["mail"]["id"]


async def test_an_absent_section_is_left_alone_and_an_empty_one_is_not(api: Api) -> None:
    document = await whole(api)
    await applied(api, document)
    assert await applied(api, bundle()) == {}
    assert await applied(api, bundle(monitors=document["monitors"])) == {"web": "unchanged"}
    assert await applied(api, bundle(services=None, routes=None)) == {
        "shop": "orphan",
        "routes": "orphan",
    }
    # An earlier format decides about monitors and services only.
    head = {"organization": "acme", "project": "shop"}
    assert await applied(api, {"format": 1, **head, "monitors": {}}) == {"web": "orphan"}
    assert len(await listed(api, "notification-channels")) == 2
    assert await call(api, "GET", f"/projects/{api.project}/alert-routes") != {"routes": []}


async def test_a_monitor_has_the_channels_that_its_entry_states(api: Api) -> None:
    await prepare(api)
    both = {"ops": OPS, "mail": MAIL}
    named = {**WEB, "channels": ["mail", "Ops"]}
    document = bundle(channels=both, monitors={"web": named, "api": {**WEB, "name": "Api"}})
    assert set((await applied(api, document)).values()) == {"create"}
    ids = {name: one["id"] for name, one in (await listed(api, "notification-channels")).items()}
    of = {one["slug"]: one["id"] for one in (await listed(api, "monitors")).values()}

    async def attached(slug: str) -> set[str]:
        rows = await call(api, "GET", f"/monitors/{of[slug]}/notifications")
        return {one["name"] for one in rows}

    assert await attached("web") == {"Ops", "mail"}
    path, body = f"/monitors/{of['web']}/notifications", {"channel_id": ids["Ops"]}
    assert await call(api, "POST", path, body, 409) == {"error": "managed_by_file"}
    gone = f"{path}/{ids['Ops']}"
    assert await call(api, "DELETE", gone, None, 409) == {"error": "managed_by_file"}
    # People attach the channels that an entry does not state.
    await call(api, "POST", f"/monitors/{of['api']}/notifications", body, 204)
    assert set((await applied(api, document)).values()) == {"unchanged"}
    assert await attached("api") == {"Ops"}
    exported = await export(api)
    assert exported["monitors"]["web"]["channels"] == ["mail", "ops"]
    assert exported["monitors"]["api"]["channels"] == ["ops"]
    # Another bundle that describes the monitor as it is changes nothing about it.
    other = bundle(monitors={"web": WEB}, services={"shop": {}})
    assert await applied(api, bundle(services={"shop": {"support_hours": HOURS}})) == {
        "shop": "create"
    }
    assert set((await applied(api, other, "?name=other")).values()) == {"unchanged"}
    assert await call(api, "POST", path, body, 409) == {"error": "managed_by_file"}
    (shop,) = await call(api, "GET", f"/projects/{api.project}/services")
    hours = f"/projects/{api.project}/services/{shop['service']['id']}/support-hours"
    moved = {**HOURS, "timezone": "Europe/Paris"}
    assert await call(api, "PUT", hours, moved, 409) == {"error": "managed_by_file"}
    # An export states the channels that people attached. The plan tells that a bundle gets them.
    plan = await ask(api, "plan", exported)
    (fields,) = [one["fields"] for one in plan["changes"] if one["uid"] == "api"]
    assert fields == [{"name": "channels_managed", "from": False, "to": True}]
    # A change, and then none at all.
    for chosen in (["ops"], []):
        changed = bundle(
            monitors={"web": {**WEB, "channels": chosen}, "api": {**WEB, "name": "Api"}}
        )
        plan = await ask(api, "plan", changed)
        (fields,) = [one["fields"] for one in plan["changes"] if one["uid"] == "web"]
        assert [one["name"] for one in fields] == ["channels"]
        assert (await applied(api, changed))["web"] == "update"
        assert {one.lower() for one in await attached("web")} == set(chosen)
    assert (await export(api))["monitors"]["web"]["channels"] == []
    # Without the setting, people edit them again.
    plain = bundle(monitors={"web": WEB, "api": {**WEB, "name": "Api"}})
    assert (await applied(api, plain))["web"] == "update"
    await call(api, "POST", path, body, 204)
    await release(api)
    answer = await ask(api, "plan", bundle(monitors={"web": {**WEB, "channels": []}}), 409)
    assert "people edit it, and channels would change" in answer["error"]
    for wrong, said in (
        (["moon"], "monitors.web.channels: is not a name in the project"),
        ([""], "monitors.web.channels: must not name an empty text"),
        (["ops", "ops"], "monitors.web.channels: must not name anything twice"),
    ):
        refused = bundle(monitors={"web": {**WEB, "channels": wrong}})
        assert (await ask(api, "plan", refused, 400))["error"] == said
    early = {**bundle(monitors={"web": named}), "format": 2}
    answer = await ask(api, "plan", early, 400)
    assert answer == {"error": "monitors.web.channels: needs format 3"}


async def test_managed_objects_refuse_edits_until_they_are_released(api: Api) -> None:
    await applied(api, await whole(api))
    for what, path in (
        ("notification-channels", "notification-channels"),
        ("oncall-schedules", "oncall-schedules"),
        ("escalation-policies", "escalation-policies"),
    ):
        for one in (await listed(api, what)).values():
            assert one["managed_by"] == "api"
            answer = await call(api, "DELETE", f"/{path}/{one['id']}", None, 409)
            assert answer == {"error": "managed_by_file"}
    ops = (await listed(api, "notification-channels"))["Ops"]
    edit = f"/notification-channels/{ops['id']}"
    assert await call(api, "PATCH", edit, {"name": "X"}, 409) == {"error": "managed_by_file"}
    routes = f"/projects/{api.project}/alert-routes"
    empty: dict[str, Any] = {"routes": [], "default": None}
    assert await call(api, "PUT", routes, empty, 409) == {"error": "managed_by_file"}
    # A bundle names the secret, so that a rename would break it.
    secret = f"/projects/{api.project}/secrets/slack"
    renamed = await call(api, "PATCH", secret, {"name": "chat"}, 409)
    assert renamed["error"].startswith("managed_by_file")
    assert counted(await release(api, {"channels": ["ops"], "routes": ["routes"]})) == {
        "channels": 1,
        "routes": 1,
    }
    await call(api, "PATCH", edit, {"name": "X"})
    await call(api, "PUT", routes, empty)
    await call(api, "PATCH", secret, {"name": "chat"}, 204)
    assert (await listed(api, "notification-channels"))["X"]["config"] == {"url_ref": "chat"}
    assert await call(api, "DELETE", f"/projects/{api.project}/secrets/chat", None, 409) == {
        "error": "secret_in_use"
    }


async def test_a_referred_secret_is_read_when_a_message_is_sent(api: Api) -> None:
    await applied(api, await whole(api))
    uid = (await listed(api, "notification-channels"))["Ops"]["id"]

    async def url() -> str:
        async with api.pool.transaction("test", read_only=True) as tx:
            row = await select_channel(tx, uid)
        assert row is not None
        assert SLACK not in row.config
        return opened(row, api.context.keyring)["url"]

    assert await url() == SLACK
    path = f"/projects/{api.project}/secrets/slack"
    await call(api, "PATCH", path, {"value": f"{SLACK}/new"}, 204)
    assert await url() == f"{SLACK}/new"
    await call(api, "PATCH", path, {"value": "no address"}, 204)
    answer = await call(api, "POST", f"/notification-channels/{uid}/test", None)
    assert answer == {"ok": False, "reason": "bad_secret"}


async def test_objects_of_people_are_taken_over_by_their_names(api: Api) -> None:
    document = await whole(api)
    await applied(api, document)
    await release(api)
    exported = await export(api)
    # Under any name it changes no data and no owner.
    assert set((await applied(api, exported, "?name=other")).values()) == {"unchanged"}
    renamed = (await listed(api, "notification-channels"))["Ops"]
    changed = deepcopy(document)
    changed["channels"]["ops"]["enabled"] = False
    refused = await ask(api, "plan", changed, 409)
    assert refused["error"].startswith("channels.ops: people edit it, and enabled would change")
    taken = await ask(api, "apply", changed, query=TAKE)
    over = {one["uid"]: one.get("fields", []) for one in taken["changes"]}
    assert over["ops"][0] == {"name": "managed_by", "from": "", "to": "api"}
    assert over["routes"] == [{"name": "managed_by", "from": "", "to": "api"}]
    assert (await listed(api, "notification-channels"))["Ops"]["id"] == renamed["id"]
    # Another bundle of the project may not change them, and has names of its own.
    other = bundle(channels={"ops": {**OPS, "enabled": True}})
    refused = await ask(api, "plan", other, 409, "?name=other")
    assert "the bundle default manages it" in refused["error"]
    mine = bundle(
        escalation_policies={
            "late": {"steps": [{"after_seconds": 0, "targets": [{"channel": "Ops"}]}]}
        }
    )
    assert await applied(api, mine, "?name=other") == {"late": "create"}


async def test_a_name_of_several_objects_is_refused(api: Api) -> None:
    await prepare(api)
    for _ in range(2):
        body = {"type": "ntfy", "name": "Ops", "config": {"topic": "a"}}
        await call(api, "POST", f"/projects/{api.project}/notification-channels", body, 201)
    one = {"name": "Ops", "type": "ntfy", "config": {"topic": "a"}}
    refused = await ask(api, "plan", bundle(channels={"ops": one}), 409)
    assert refused["error"].startswith("channels.ops: the name 'Ops' is that of 2 objects")
    both = await export(api)
    assert set(both["channels"]) == {"ops", "ops-2"}
    assert await applied(api, both) == {"ops": "unchanged", "ops-2": "unchanged"}


STEP = {"after_seconds": 0, "targets": [{"policy": "two"}]}


ERRORS: list[tuple[dict[str, Any], str]] = [
    (
        {"channels": {"ops": {"type": "slack", "config": {"url": SLACK}}}},
        "channels.ops.config.url: is a secret, which a bundle must not contain: keep it as a"
        " secret of the project and name it in url_ref",
    ),
    (
        {"channels": {"ops": {"type": "slack", "config": {"url_ref": "moon"}}}},
        "channels.ops.config.url_ref: names no secret of this project",
    ),
    (
        {"channels": {"ops": {"type": "slack"}}},
        "channels.ops.config.url: is required",
    ),
    (
        {"channels": {"ops": {"type": "pigeon"}}},
        "channels.ops.type: must be one of apprise, discord, email, ntfy, opsgenie, pagerduty,"
        " slack, teams, telegram, webhook",
    ),
    (
        {"schedules": {"day": {**DAY, "layers": [], "participants": [{"channel": "moon"}]}}},
        "schedules.day.participants[0].channel: is not a name in the project",
    ),
    (
        {"schedules": {"day": {**DAY, "participants": [{"person": "x@y", "channel": "a"}]}}},
        "schedules.day.participants[0]: must be one of person and channel",
    ),
    (
        {"schedules": {"day": {**DAY, "layers": [], "participants": [{"person": "x@y"}]}}},
        "schedules.day.participants[0].person: is not a member of the project, which begins with"
        " an accepted invitation",
    ),
    (
        {"schedules": {"day": {**DAY, "anchor_at": "monday"}}},
        "schedules.day.anchor_at: must be an instant such as 2026-01-31T09:00:00.000Z",
    ),
    (
        {
            "escalation_policies": {
                "one": {"steps": [STEP]},
                "two": {"steps": [{"after_seconds": 0, "targets": [{"policy": "one"}]}]},
            }
        },
        "escalation_policies.one.steps: must not lead back to this policy",
    ),
    (
        {
            "escalation_policies": {
                "one": {"steps": [{"after_seconds": 0, "targets": [{"schedule": "one"}]}]}
            }
        },
        "escalation_policies.one.steps[0].targets[0].schedule: is not a name in the project",
    ),
    (
        {"routes": {"rules": [{"matchers": "a", "service": "x"}]}},
        "routes.rules[0].matchers: ",
    ),
    (
        {"services": {"shop": {}}, "routes": {"default": {"service": "shop"}}},
        "routes.default.service: names a service without an escalation policy, which pages nobody",
    ),
    ({"routes": {"default": {}}}, "routes.default: must have one of service and escalation_policy"),
    (
        {"channels": {f"c{n}": MAIL for n in range(101)}},
        "channels: must have at most 100 entries",
    ),
    (
        {
            "services": {
                "shop": {
                    "support_hours": {
                        "timezone": "Moon",
                        "windows": [{"from": "09:00", "to": "10:00"}],
                    }
                }
            }
        },
        "services.shop.support_hours.timezone: is not an IANA time zone",
    ),
]


async def test_an_error_is_named_and_nothing_is_written(api: Api) -> None:
    for sections, said in ERRORS:
        fine = {"channels": {"fine": MAIL}} if "channels" not in sections else {}
        for verb in ("plan", "apply"):
            answer = await ask(api, verb, bundle(**fine, **sections), 400)
            assert answer["error"].startswith(said), said
    assert await listed(api, "notification-channels") == {}


async def test_a_list_that_is_too_long_is_refused_before_its_names_are_looked_up(api: Api) -> None:
    unknown = {"person": "x@y"}
    layer = {**DAY, "layers": [], "participants": [unknown]}
    window = {"from": "09:00", "to": "10:00"}
    override = {**unknown, "starts_at": ANCHOR, "ends_at": ANCHOR}

    def schedule(**settings: Any) -> dict[str, Any]:
        return {"schedules": {"day": {**layer, **settings}}}

    def policy(steps: int, targets: int) -> dict[str, Any]:
        step = {"after_seconds": 0, "targets": [{"policy": "one"}] * targets}
        return {"escalation_policies": {"one": {"steps": [step] * steps}}}

    inner = {key: value for key, value in layer.items() if key in ("shift_seconds", "anchor_at")}
    inner |= {"name": "a", "participants": [unknown] * 101}
    day, one = "schedules.day", "escalation_policies.one"
    for sections, field, most in (
        (schedule(participants=[unknown] * 101), f"{day}.participants", "at most 100"),
        (schedule(layers=[inner]), f"{day}.layers[0].participants", "at most 100"),
        (schedule(layers=[inner] * 20), f"{day}.layers", "at most 19"),
        (schedule(restrictions=[window] * 51), f"{day}.restrictions", "at most 50"),
        (schedule(overrides=[override] * 201), f"{day}.overrides", "at most 200"),
        (policy(21, 1), f"{one}.steps", "1 to 20"),
        (policy(1, 21), f"{one}.steps[0].targets", "1 to 20"),
        (
            {"routes": {"rules": [{"matchers": "a", "service": "x"}] * 101}},
            "routes.rules",
            "at most 100",
        ),
    ):
        answer = await ask(api, "plan", bundle(**sections), 400)
        assert answer == {"error": f"{field}: must have {most} entries"}


async def test_the_limit_of_a_project_is_checked_before_a_write(api: Api) -> None:
    many = {f"c{n}": {"type": "ntfy", "config": {"topic": "a"}} for n in range(99)}
    await applied(api, bundle(channels=many))
    more = bundle(channels={"x": MAIL, "y": MAIL})
    answer = await ask(api, "apply", more, 400, "?name=other")
    assert answer == {"error": "channels: would make more than 100 of the project"}
    assert len(await listed(api, "notification-channels")) == 99


async def test_a_circle_through_another_owners_policy_is_found(api: Api) -> None:
    email = await prepare(api)
    first = bundle(
        escalation_policies={
            "one": with_mail(ALL, email),
            "two": {"steps": [{"after_seconds": 0, "targets": [{"policy": "one"}]}]},
        }
    )
    await applied(api, first)
    await release(api, {"escalation_policies": ["two"]})
    turned = bundle(
        escalation_policies={
            "one": {"steps": [{"after_seconds": 0, "targets": [{"policy": "two"}]}]}
        }
    )
    said = {"error": "escalation_policies.one.steps: must not lead back to this policy"}
    assert await ask(api, "plan", turned, 400) == said
    assert await ask(api, "apply", turned, 400) == said
    # Both turn around in one application.
    await applied(
        api,
        bundle(
            escalation_policies={
                "one": {"steps": [{"after_seconds": 0, "targets": [{"policy": "two"}]}]},
                "two": with_mail(ALL, email),
            }
        ),
        TAKE,
    )


async def test_overrides_are_created_with_the_schedule_and_belong_to_people_then(api: Api) -> None:
    email = await prepare(api)
    spans = [(hours, hours + 2) for hours in (-3, -1, 5)]
    overrides = [
        {
            "person": email,
            "starts_at": to_text(Instant(FROZEN_NOW + first * HOUR)),
            "ends_at": to_text(Instant(FROZEN_NOW + last * HOUR)),
        }
        for first, last in spans
    ]
    day = {**with_mail(DAY, email), "layers": [], "participants": [{"person": email}]}
    document = bundle(schedules={"day": {**day, "overrides": overrides}})
    assert await applied(api, document) == {"day": "create"}
    path = f"/oncall-schedules/{(await listed(api, 'oncall-schedules'))['Day']['id']}/overrides"

    async def stored() -> list[dict[str, Any]]:
        return list(await call(api, "GET", path))

    # The first one has ended.
    assert [one["ends_at"] for one in await stored()] == [one["ends_at"] for one in overrides[1:]]
    # People put another one in the place of the first, and add one.
    removed = (await stored())[0]["id"]
    await call(api, "DELETE", f"/oncall-overrides/{removed}", None, 204)
    body = {"type": "ntfy", "name": "Other", "config": {"topic": "b"}}
    other = await call(api, "POST", f"/projects/{api.project}/notification-channels", body, 201)
    span = {name: overrides[1][name] for name in ("starts_at", "ends_at")}
    await call(api, "POST", path, {"channel_id": other["id"], **span}, 201)
    kept = await stored()
    more = {**overrides[2], "ends_at": to_text(Instant(FROZEN_NOW + 9 * HOUR))}
    for given in (overrides, [*overrides, more], []):
        document = bundle(schedules={"day": {**day, "overrides": given}})
        assert await applied(api, document) == {"day": "unchanged"}
    renamed = {**day, "name": "Days", "overrides": overrides}
    assert await applied(api, bundle(schedules={"day": renamed})) == {"day": "update"}
    assert await stored() == kept
    assert "overrides" not in (await export(api))["schedules"]["day"]
    wrong = {**overrides[2], "starts_at": ANCHOR, "ends_at": "2090-01-01T00:00:00Z"}
    other_day = {**day, "name": "Other", "overrides": [wrong]}
    answer = await ask(api, "plan", bundle(schedules={"other": other_day}), 400)
    assert answer["error"].startswith("schedules.other.overrides.ends_at: must be at most 366 days")


async def test_the_default_policy_is_a_setting_of_its_entry(api: Api) -> None:
    email = await prepare(api)
    path = f"/projects/{api.project}/default-escalation-policy"
    one = with_mail(ALL, email)

    async def default() -> Any:
        uid = (await call(api, "GET", path))["escalation_policy_id"]
        names = await listed(api, "escalation-policies")
        return next((name for name, row in names.items() if row["id"] == uid), None)

    both = {"a": {**one, "default": True}, "b": one}
    await applied(api, bundle(escalation_policies=both))
    assert await default() == "a"
    assert (await export(api))["escalation_policies"]["a"]["default"] is True
    uid = (await listed(api, "escalation-policies"))["b"]["id"]
    for chosen in (uid, None):
        body = {"escalation_policy_id": chosen}
        assert await call(api, "PUT", path, body, 409) == {"error": "managed_by_file"}
    turned = {"a": one, "b": {**one, "default": True}}
    await applied(api, bundle(escalation_policies=turned))
    assert await default() == "b"
    await applied(api, bundle(escalation_policies={"a": one, "b": one}))
    assert await default() is None
    twice = {"a": {**one, "default": True}, "b": {**one, "default": True}}
    assert await ask(api, "plan", bundle(escalation_policies=twice), 400) == {
        "error": "escalation_policies.b.default: must not be given twice: a is the default of"
        " the project"
    }
    await release(api)
    await call(api, "PUT", path, {"escalation_policy_id": uid})
    # An entry that does not name the default of people leaves it alone only with its owner.
    again = await ask(api, "plan", bundle(escalation_policies={"b": one}), 409)
    assert "people edit it, and default would change" in again["error"]
    third = bundle(escalation_policies={"c": {**one, "default": True}})
    said = "escalation_policies.c: people edit it, and default of b would change"
    assert (await ask(api, "plan", third, 409))["error"].startswith(said)
    await applied(api, third, TAKE)
    assert await default() == "c"


async def test_support_hours_of_an_earlier_format_stay(api: Api) -> None:
    base = f"/projects/{api.project}/services"
    made = await call(api, "POST", base, {"slug": "shop", "name": "Shop"}, 201)
    path = f"{base}/{made['id']}"
    await call(api, "PUT", f"{path}/support-hours", HOURS)
    head = {"format": 2, "organization": "acme", "project": "shop", "monitors": {}}
    second = {**head, "services": {"shop": {"name": "The shop"}}}
    await applied(api, second, TAKE)
    assert (await call(api, "GET", path))["service"]["support_hours"] == HOURS
    refused = {**head, "services": {"shop": {"support_hours": HOURS}}}
    assert await ask(api, "plan", refused, 400) == {
        "error": "services.shop.support_hours: needs format 3"
    }
    # People edit hours that the bundle does not state, in each format.
    named = {"name": "The shop"}
    other = {"timezone": "", "windows": [{"weekdays": ["sun"], "from": "00:00", "to": "24:00"}]}
    for document in (second, bundle(services={"shop": named})):
        assert await applied(api, document) == {"shop": "unchanged"}
        for hours in (other, HOURS):
            await call(api, "PUT", f"{path}/support-hours", hours)
        assert (await call(api, "GET", path))["service"]["support_hours"] == HOURS
    stated = {**named, "support_hours": HOURS}
    assert await applied(api, bundle(services={"shop": stated})) == {"shop": "update"}
    answer = await call(api, "PUT", f"{path}/support-hours", other, 409)
    assert answer == {"error": "managed_by_file"}
    cleared = {**named, "support_hours": {}}
    assert await applied(api, bundle(services={"shop": cleared})) == {"shop": "update"}
    assert "support_hours" not in (await call(api, "GET", path))["service"]
    assert await applied(api, bundle(services={"shop": named})) == {"shop": "update"}
    await call(api, "PUT", f"{path}/support-hours", other)


def random_sections(rnd: random.Random) -> dict[str, Any]:
    """Returns the sections of a random valid bundle."""
    channels = {f"c{n}": random_channel(rnd) for n in range(rnd.randint(0, 5))}
    people = [{"person": "editor@example.test"}, *({"channel": uid} for uid in channels)]
    schedules = {f"s{n}": random_schedule(rnd, people) for n in range(rnd.randint(0, 3))}
    policies: dict[str, Any] = {}
    for number in range(rnd.randint(0, 5)):
        targets = [*people, *({"schedule": uid} for uid in schedules)]
        # Only the first three are named, so that no policy is too deep.
        targets += [{"policy": uid} for uid in list(policies)[:3]]
        after = sorted(rnd.randint(0, 9_000) for _ in range(rnd.randint(1, 4)))
        steps = [
            {"after_seconds": at, "targets": rnd.sample(targets, rnd.randint(1, len(targets)))}
            for at in after
        ]
        policies[f"p{number}"] = {
            "default": rnd.random() < 0.5 and not any(one["default"] for one in policies.values()),
            "name": rnd.choice(["Nights", f"Policy {number}", "ü"]),
            "steps": steps,
            "repeat_last": rnd.random() < 0.3,
            "ack_timeout_seconds": rnd.choice([0, 300, 7_200]),
        }
    named = [{}, *({"escalation_policy": uid} for uid in policies)]
    services = {
        f"v{n}": {
            **rnd.choice(named),
            **({"oncall_schedule": rnd.choice(list(schedules))} if schedules else {}),
            **({"support_hours": random_hours(rnd)} if rnd.random() < 0.5 else {}),
        }
        for n in range(rnd.randint(0, 3))
    }
    monitors = {
        f"m{n}": {
            **WEB,
            **rnd.choice(named),
            **(
                {"channels": rnd.sample(list(channels), rnd.randint(0, len(channels)))} if n else {}
            ),
        }
        for n in range(rnd.randint(0, 3))
    }
    targets = [one for one in named if one]
    targets += [{"service": uid} for uid, one in services.items() if "escalation_policy" in one]
    routes: dict[str, Any] = {"rules": [], "default": None}
    if targets:
        matchers = ['a="b"', '{team=~"x|y", severity!="none"}', "b!~'c.*'", 'c = ""']
        routes["rules"] = [
            {"matchers": rnd.choice(matchers[:2]), **rnd.choice(targets)}
            for _ in range(rnd.randint(0, 4))
        ]
        routes["default"] = rnd.choice([None, rnd.choice(targets)])
    return {
        "people": {"p": random_person(rnd)} if rnd.random() < 0.7 else {},
        "channels": channels,
        "schedules": schedules,
        "escalation_policies": policies,
        "monitors": monitors,
        "services": services,
        **({"routes": routes} if routes["rules"] or routes["default"] else {}),
    }


def random_person(rnd: random.Random) -> dict[str, Any]:
    methods = [
        {"kind": "sms", "address": "+49 30 1234", "label": "Mobile"},
        {"kind": "voice", "address": "0049 (0)30 1234"},
        {"kind": "email", "address": "other@example.test", "label": ""},
    ]
    return {
        "email": "editor@example.test",
        "name": rnd.choice(["", "Ed"]),
        "role": rnd.choice(["editor", "viewer"]),
        "contact_methods": rnd.sample(methods, rnd.randint(0, 3)),
    }


def random_channel(rnd: random.Random) -> dict[str, Any]:
    kind, config = rnd.choice(
        [
            ("slack", {"url_ref": rnd.choice(["slack", "other"])}),
            ("ntfy", {"topic": f"t{rnd.randint(0, 9)}"}),
            ("ntfy", {"topic": "a", "token_ref": "slack"}),
            ("webhook", {"url": "https://hooks.example.org/x"}),
        ]
    )
    return {
        "name": rnd.choice(["Ops", f"Channel {rnd.randint(0, 3)}", "…"]),
        "type": kind,
        "config": config,
        "enabled": rnd.random() < 0.8,
        "takes_tickets": rnd.random() < 0.3,
        "takes_warnings": rnd.random() < 0.3,
    }


def random_layer(rnd: random.Random, people: list[dict[str, str]]) -> dict[str, Any]:
    layer: dict[str, Any] = {
        "shift_seconds": rnd.choice([3_600, 86_400, 604_800]),
        "anchor_at": f"2026-0{rnd.randint(1, 9)}-05T08:00:00.000Z",
        "timezone": rnd.choice(["", "Europe/Berlin", "Asia/Kathmandu"]),
        "participants": rnd.choices(people, k=rnd.randint(1, 4)),
        "restrictions": random_hours(rnd)["windows"] if rnd.random() < 0.5 else [],
    }
    if rnd.random() < 0.3:
        layer["starts_at"] = "2026-01-01T00:00:00.000Z"
        layer["ends_at"] = rnd.choice([None, "2028-01-01T00:00:00.000Z"])
    return layer


def random_schedule(rnd: random.Random, people: list[dict[str, str]]) -> dict[str, Any]:
    return {
        **random_layer(rnd, people),
        "name": rnd.choice(["Day", f"Schedule {rnd.randint(0, 3)}"]),
        "layers": [
            {"name": f"Layer {n}", **random_layer(rnd, people)} for n in range(rnd.randint(0, 2))
        ],
        "hand_off_email": rnd.random() < 0.5,
    }


def random_hours(rnd: random.Random) -> dict[str, Any]:
    days = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
    return {
        "timezone": rnd.choice(["", "Europe/Berlin"]),
        "windows": [
            {
                "weekdays": rnd.choice([[], sorted(rnd.sample(days, 3), key=days.index)]),
                "from": f"{rnd.randint(0, 23):02d}:30",
                "to": rnd.choice(["24:00", "07:15", "18:00"]),
            }
            for _ in range(rnd.randint(1, 3))
        ],
    }
