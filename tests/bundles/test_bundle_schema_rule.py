"""The published schema takes what is read and refuses what is refused; editors go by it."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from leadline.storage.bundles.rules.bundle import read_bundle
from leadline.storage.bundles.rules.bundle_schema import bundle_schema, schema_text
from leadline.storage.core.refusal import Refused

# The import of jsonschema takes 3 s of CPU in a test process: one process runs the tests with it.
pytestmark = pytest.mark.xdist_group("jsonschema")

WEB: dict[str, Any] = {"name": "Web", "type": "http", "target": "https://example.org"}


@cache
def validator() -> Any:
    """Compiles the schema."""
    import jsonschema

    return jsonschema.Draft202012Validator(bundle_schema())


def bundle(monitor: dict[str, Any], **services: Any) -> dict[str, Any]:
    head = {"organization": "acme", "project": "shop", "monitors": {"web": {**WEB, **monitor}}}
    return {"format": 2, **head, "services": services}


ANCHOR = "2026-01-05T09:00:00Z"


def on_call(**sections: Any) -> dict[str, Any]:
    return {"format": 3, "organization": "acme", "project": "shop", **sections}


def test_it_is_a_schema_and_the_published_one() -> None:
    validator().check_schema(bundle_schema())
    published = Path(__file__).parents[2] / "docs" / "bundle.schema.json"
    assert json.loads(published.read_text()) == json.loads(schema_text())


@pytest.mark.parametrize(
    "document",
    [
        bundle({}),
        bundle({"interval_seconds": "30s", "grace_seconds": 0, "renotify_seconds": 0}),
        bundle({"config": {"headers": {"Accept": "x"}, "password_ref": "db"}}),
        bundle({"type": "composite", "target": "", "config": {"children": ["a"]}}),
        bundle({}, shop={"monitors": ["web"], "sla_targets": {"30d": {"objective": 99.9}}}),
        bundle({}, shop={"alerting": {"renotify_seconds": "10m"}}),
        on_call(),
        on_call(channels={"ops": {"type": "slack", "config": {"url_ref": "slack"}}}, routes=None),
        on_call(
            schedules={
                "day": {
                    "shift_seconds": "1d",
                    "anchor_at": ANCHOR,
                    "participants": [{"person": "ada@example.org"}, {"channel": "ops"}],
                    "restrictions": [{"weekdays": ["mon"], "from": "09:00", "to": "24:00"}],
                }
            }
        ),
        on_call(
            escalation_policies={
                "night": {"steps": [{"after_seconds": "5m", "targets": [{"schedule": "day"}]}]}
            },
            services={"shop": {"support_hours": {"timezone": "Europe/Berlin", "windows": []}}},
            routes={"rules": [{"matchers": "a=b", "service": "shop"}], "default": None},
        ),
        on_call(webhooks={"a": {"url": "https://a.example/", "secret_ref": ""}}),
        on_call(webhooks={"a": {"url": "http://a.example/", "enabled": False, "secret_ref": "b"}}),
    ],
)
def test_an_accepted_document_is_valid(document: dict[str, Any]) -> None:
    validator().validate(document)
    read_bundle(document)


@pytest.mark.parametrize(
    "document",
    [
        bundle({"interval": 30}),
        bundle({"type": "htp"}),
        bundle({"retries": "3"}),
        bundle({"interval_seconds": "fast"}),
        bundle({"config": {"password": "x"}}),
        bundle({}, shop={"sla_targets": {"31d": {"objective": 99}}}),
        bundle({}, Shop={}),
        {**bundle({}), "format": 4},
        {**bundle({}), "channels": {}},
        on_call(channels={"ops": {"type": "slack", "config": {"url": 7}}}),
        on_call(schedules={"day": {"shift_seconds": "1d", "anchor_at": ANCHOR}}),
        on_call(escalation_policies={"night": {"steps": [{"targets": []}]}}),
        on_call(routes={"rules": [{"service": "shop"}]}),
        {**on_call(), "routes": {"first": {}}},
        on_call(webhooks=[{"url": "https://a.example/"}]),
        on_call(webhooks={"a": {"secret_ref": "b"}}),
        on_call(webhooks={"a": {"url": "https://a.example/", "secret_ref": "B"}}),
        on_call(webhooks={"a": {"url": "https://a.example/", "secret": "whsec_x"}}),
        {**bundle({}), "webhooks": {}},
    ],
)
def test_a_refused_document_is_invalid(document: dict[str, Any]) -> None:
    assert not validator().is_valid(document)
    with pytest.raises(Refused):
        read_bundle(document)
