"""A bundle is read, or refused with the entry and the field."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.monitor_spec import MonitorType
from leadline.storage.bundles.rules.bundle import DEPTH_MOST, MONITORS_MOST, Bundle, read_bundle
from leadline.storage.bundles.rules.bundle_diff import FieldChange, differences, in_order
from leadline.storage.core.refusal import Refused

WEB: dict[str, Any] = {"name": "Web", "type": "http", "target": "https://example.org"}


def bundle(**given: Any) -> dict[str, Any]:
    return {"format": 1, "organization": "acme", "project": "shop", "monitors": {}} | given


def monitor(**given: Any) -> dict[str, Any]:
    return bundle(monitors={"web": WEB | given})


def service(**given: Any) -> dict[str, Any]:
    return bundle(format=2, services={"shop": given})


def refused(document: object) -> str:
    with pytest.raises(Refused) as caught:
        read_bundle(document)
    assert caught.value.code == "invalid"
    return str(caught.value)


def test_an_entry_contains_only_its_given_fields() -> None:
    read = read_bundle(monitor(interval_seconds="1m30s", grace_seconds=5))
    assert isinstance(read, Bundle)
    web = read.monitors["web"]
    assert (web.interval_seconds, web.grace_seconds) == (90, 5)
    assert not isinstance(web.timeout_seconds, int)
    assert read.services == {}


def test_monitors_must_be_named_and_may_be_blank_and_services_need_not_be() -> None:
    document = bundle()
    del document["monitors"]
    assert refused(document).startswith("monitors: must be a mapping")
    read = read_bundle(bundle(format=2, monitors=None, services=None))
    assert (read.monitors, read.services) == ({}, {})
    assert read_bundle(bundle(format=2)).services == {}


def test_a_section_that_is_absent_is_not_stated() -> None:
    head = {"format": 3, "organization": "acme", "project": "shop"}
    assert read_bundle(head).stated == frozenset()
    given = read_bundle({**head, "channels": None, "routes": None, "services": {}})
    assert given.stated == {"channels", "routes", "services"}
    assert given.named == []
    assert read_bundle(bundle()).stated == {"monitors", "services"}


def test_durations_are_read_wherever_seconds_are_asked_for() -> None:
    read = read_bundle(
        service(
            alerting={"renotify_seconds": "5m"},
            sla_targets={
                "30d": {
                    "objective": 99.9,
                    "burn_rules": [
                        {
                            "long_window_seconds": "1h",
                            "short_window_seconds": "5m",
                            "threshold": 14.4,
                            "severity": "page",
                        }
                    ],
                }
            },
        )
    ).services["shop"]
    assert read.alerting.renotify_seconds == 300
    rule = read.sla_targets["30d"].burn_rules[0]
    assert (rule.long_window_seconds, rule.short_window_seconds) == (3_600, 300)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ([], "bundle: must be a mapping of format, organization, project and monitors"),
        (bundle(format=4), "format: must be 1, 2 or 3"),
        (bundle(format=True), "format: must be 1, 2 or 3"),
        (bundle(format="1"), "format: must be 1, 2 or 3"),
        (bundle(monitor={}), "monitor: is not known here"),
        (bundle(services={}), "services: is not known here: services need format 2"),
        (bundle(channels={}), "channels: is not known here: channels need format 3"),
        (bundle(format=2, routes={}), "routes: is not known here: routes need format 3"),
        (bundle(format=3, routes=[]), "routes: must be a mapping of rules and default"),
        (bundle(format=3, routes={"rules": [{}]}), "routes.rules[0].matchers: is required"),
        (bundle(format=3, channels={"Ops": {}}), "channels.Ops: must match ^[a-z][a-z0-9-]{0,62}$"),
        (bundle(organization=""), "organization: must be a slug or an id"),
        (bundle(project=None), "project: must be a slug or an id"),
        (bundle(monitors=[]), "monitors: must be a mapping from uids to objects"),
        (bundle(monitors={"Web": WEB}), "monitors.Web: must match ^[a-z][a-z0-9-]{0,62}$"),
        (bundle(monitors={"web": None}), "monitors.web: must be a mapping"),
        (bundle(monitors={"web": {"type": "http"}}), "monitors.web.name: is required"),
        (
            monitor(type="htp"),
            f"monitors.web.type: must be one of {', '.join(MonitorType)}",
        ),
        (monitor(interval=30), "monitors.web.interval: is not known here"),
        (monitor(tags=[False]), "monitors.web.tags[0]: expected str, got bool"),
        (monitor(retries="3"), "monitors.web.retries: expected int, got str"),
        (monitor(depends_on=["a", "a"]), "monitors.web.depends_on: must not name anything twice"),
        (service(sli="web"), "services.shop.sli: expected array, got str"),
        (service(policies={"x": 1}), "services.shop.policies.x: is not known here"),
        (
            monitor(interval_seconds="fast"),
            "monitors.web.interval_seconds: "
            "must be a number of seconds, or a duration such as 30s or 1h30m",
        ),
        (
            monitor(interval_seconds="1500ms"),
            "monitors.web.interval_seconds: "
            "must be a number of seconds, or a duration such as 30s or 1h30m",
        ),
    ],
)
def test_an_error_is_named(document: object, said: str) -> None:
    assert refused(document) == said


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"password": "hunter2"}, "monitors.web.config.password"),
        ({"headers": {"Authorization": "Bearer hunter2"}}, "config.headers.Authorization"),
        ({"headers": {"X-API-Key": "hunter2"}}, "config.headers.X-API-Key"),
    ],
)
def test_a_bundle_with_a_secret_is_refused(config: dict[str, Any], field: str) -> None:
    said = refused(monitor(config=config))
    assert field in said
    assert "hunter2" not in said


def test_blank_secrets_and_other_headers_are_accepted() -> None:
    config = {"password": "", "headers": {"Authorization": "", "Accept": "text/html"}}
    assert read_bundle(monitor(config=config)).monitors["web"].config == config


def test_a_reference_to_a_secret_is_what_is_asked_for() -> None:
    assert "name it in password_ref" in refused(monitor(config={"password": "x"}))
    assert read_bundle(monitor(config={"password_ref": "db"})).monitors["web"].config


def test_bounds() -> None:
    many = {f"m{n}": WEB for n in range(MONITORS_MOST + 1)}
    assert refused(bundle(monitors=many)) == f"monitors: must have at most {MONITORS_MOST} entries"
    deep: Any = {}
    for _ in range(DEPTH_MOST):
        deep = {"a": deep}
    assert "nested deeper" in refused(monitor(config=deep))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(["name", "type", "config", "tags", "x"]), VALUES))
def test_invalid_input_only_causes_a_refusal(entry: dict[str, Any]) -> None:
    field = "monitors.web"
    try:
        read_bundle(bundle(monitors={"web": entry}))
    except Refused as why:
        field = why.field
    assert field.startswith("monitors.web")


def test_differences_are_listed_by_setting() -> None:
    before = {"name": "a", "config": {"port": 1, "old": 2}, "tags": [], "gone": 1, "flag": True}
    after = {"name": "a", "config": {"port": 3, "new": 4}, "tags": ["x"], "flag": 1}
    assert differences(before, after) == [
        FieldChange(name="config.port", from_=1, to=3),
        FieldChange(name="config.new", to=4),
        FieldChange(name="config.old", from_=2),
        FieldChange(name="tags", from_=[], to=["x"]),
        FieldChange(name="flag", from_=True, to=1),
        FieldChange(name="gone", from_=1),
    ]


@given(
    st.dictionaries(
        st.integers(0, 7).map(str), st.lists(st.integers(0, 9).map(str), max_size=4), max_size=8
    )
)
def test_each_comes_after_what_it_refers_to_unless_that_leads_back(
    wanted: dict[str, list[str]],
) -> None:
    order, circle = in_order(wanted)
    assert (circle is not None) == _has_circle(wanted)
    if circle is None:
        assert sorted(order) == sorted(wanted)
        at = {uid: n for n, uid in enumerate(order)}
        for uid, others in wanted.items():
            assert all(at[other] < at[uid] for other in others if other in wanted)


def _has_circle(wanted: dict[str, list[str]]) -> bool:
    """Searches for a cycle by a walk from each entry until no new entry is reached."""
    for start, others in wanted.items():
        met: set[str] = set()
        edge = {other for other in others if other in wanted}
        while edge - met:
            met |= edge
            edge = {far for near in edge for far in wanted[near] if far in wanted}
        if start in met:
            return True
    return False


def test_a_long_chain_is_ordered_without_recursing() -> None:
    names = [f"m{n}" for n in range(5_000)]
    chain = {name: [after] for name, after in zip(names, [*names[1:], "end"], strict=True)}
    shuffled = list(chain.items())
    random.Random(1).shuffle(shuffled)
    order, circle = in_order(dict(shuffled))
    assert circle is None
    assert order == names[::-1]
