"""A canary document is read completely or refused at a named field, without its values in the
message.
"""

import copy
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.kinds.canary.workflow import (
    CORRELATION,
    BadWorkflow,
    FromHeader,
    HttpJson,
    LifecyclePrefix,
    MultipartFixture,
    PollJson,
    Sse,
    read_workflow,
)

POLLED: dict[str, Any] = {
    "kind": "async_transaction_v1",
    "secrets": {"key": "shop-api"},
    "submit": {
        "kind": "http_json",
        "url": "https://jobs.example/v1/jobs",
        "submit_timeout": 10,
        "accepted_status": [201, 202],
        "headers": [
            {"name": "Authorization", "secret_ref": "key"},
            {"name": "X-Purpose", "value": "canary"},
        ],
        "body": {"order": {"sku": "tea", "count": 1, "parts": [1, 2]}},
    },
    "correlate": {"source": "response_json", "path": "job.id"},
    "completion": {
        "kind": "poll_json",
        "url": f"https://jobs.example/v1/jobs/{CORRELATION}/state",
        "timeout": 120,
        "headers": [{"name": "Authorization", "secret_ref": "key"}],
        "poll": {
            "interval": 2,
            "max_attempts": 60,
            "success": {"path": "state", "value": "done"},
            "failure": {"path": "state", "values": ["failed", "lost"]},
        },
    },
    "result": {
        "max_latency": 60,
        "required_json_fields": ["result.total"],
        "lifecycle_path": "result.prefix",
    },
    "cleanup": {"kind": "lifecycle_prefix", "prefix": "canary-"},
}
STREAMED: dict[str, Any] = {
    "kind": "async_transaction_v1",
    "submit": {
        "kind": "multipart_fixture",
        "url": "https://jobs.example/v1/files",
        "submit_timeout": 60,
        "accepted_status": [202],
        "fixture_ref": "picture",
        "multipart": {"field": "file", "filename": "a.png", "fields": {"purpose": "canary"}},
    },
    "correlate": {"source": "response_header", "header_name": "X-Job"},
    "completion": {
        "kind": "sse",
        "url": f"https://jobs.example/v1/events?job={CORRELATION}&from=0",
        "timeout": 60,
        "sse": {"success_event": "done", "failure_events": ["failed"]},
    },
    "cleanup": {"kind": "none", "acknowledged": True},
}
FIXTURES = ("picture",)


def read(document: object) -> Any:
    return read_workflow(document, FIXTURES)


def changed(document: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """Returns the document with another value at a path such as `submit.headers.0.name`."""
    result = copy.deepcopy(document)
    *steps, last = place.split(".")
    at: Any = result
    for step in steps:
        at = at[int(step)] if step.isdigit() else at[step]
    if isinstance(at, list):
        at[int(last)] = value
    else:
        at[last] = value
    return result


def test_both_variants_of_each_union_are_read() -> None:
    polled, streamed = read(POLLED), read(STREAMED)
    assert isinstance(polled.submit, HttpJson)
    assert isinstance(polled.completion, PollJson)
    assert isinstance(polled.cleanup, LifecyclePrefix)
    assert polled.bindings == {"key"}
    assert isinstance(streamed.submit, MultipartFixture)
    assert isinstance(streamed.correlate, FromHeader)
    assert isinstance(streamed.completion, Sse)
    assert streamed.bindings == set()


def places(value: object, at: str = "") -> list[str]:
    """Returns the paths of all objects in the document, without those with arbitrary keys."""
    found = []
    if isinstance(value, dict):
        found.append(at)
        for name, one in value.items():
            if name not in ("body", "fields", "secrets"):
                found += places(one, f"{at}.{name}".lstrip("."))
    elif isinstance(value, list):
        for n, one in enumerate(value):
            found += places(one, f"{at}.{n}")
    return found


@pytest.mark.parametrize("document", [POLLED, STREAMED], ids=["polled", "streamed"])
def test_an_unknown_key_is_refused_and_named(document: dict[str, Any]) -> None:
    for place in places(document):
        bad = changed(document, f"{place}.surplus".lstrip("."), "a value that is nobody's business")
        with pytest.raises(BadWorkflow, match="surplus is not known") as caught:
            read(bad)
        assert "business" not in str(caught.value)


OPTIONAL = {
    "submit.headers",
    "completion.headers",
    "completion.poll.failure",
    "completion.sse.failure_events",
    "submit.multipart.fields",
    "result.max_latency",
    "result.required_json_fields",
}


@pytest.mark.parametrize("document", [POLLED, STREAMED], ids=["polled", "streamed"])
def test_only_optional_keys_can_be_omitted(document: dict[str, Any]) -> None:
    for place in places(document):
        for name in list(inside(document, place)):
            without = copy.deepcopy(document)
            del inside(without, place)[name]
            if f"{place}.{name}" in OPTIONAL:
                assert read(without)
            else:
                with pytest.raises(BadWorkflow):
                    read(without)


def inside(document: dict[str, Any], place: str) -> Any:
    at: Any = document
    for step in place.split(".") if place else []:
        at = at[int(step)] if step.isdigit() else at[step]
    return at


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        ("kind", "async_transaction_v2", "kind is not a known value"),
        ("submit.url", "http://jobs.example/", "submit.url must begin with https://"),
        ("submit.url", "https://u:p@jobs.example/", "submit.url must not carry"),
        ("submit.url", f"https://jobs.example/{CORRELATION}", "submit.url must not contain"),
        ("submit.submit_timeout", 61, "submit.submit_timeout"),
        ("submit.accepted_status", [], "submit.accepted_status must be 1 to 16"),
        ("submit.accepted_status", [302], "submit.accepted_status must be 1 to 16"),
        ("submit.headers.0.secret_ref", "other", "not declared in secrets"),
        ("submit.headers.0", {"name": "Cookie", "value": "a=b"}, "must take cookie from"),
        ("submit.headers.1.name", "Host", "must not set host"),
        ("submit.headers.1.name", "Idempotency-Key", "must not set idempotency-key"),
        ("submit.headers.1.name", "authorization", "names a header twice"),
        ("submit.headers.1.value", "a\nb", "control character"),
        ("submit.headers.1", {"name": "X-A"}, "must give either value or secret_ref"),
        ("submit.headers.1.value", "{{ x }}", "no placeholder"),
        ("submit.body", {"a": CORRELATION}, "submit.body must not contain a placeholder"),
        ("submit.body", {str(n): n for n in range(65)}, "more than 64 keys"),
        ("submit.body", {"a": list(range(33))}, "a list of more than 32"),
        ("submit.body", {"a": "x" * 8_200}, "longer than 8192 bytes"),
        ("submit.body", {"a": [[[[[[[[1]]]]]]]]}, "nested deeper than 8"),
        ("correlate.path", "a[", "correlate.path"),
        ("completion.timeout", 3_601, "completion.timeout"),
        ("completion.poll.interval", 0, "completion.poll.interval"),
        ("completion.poll.max_attempts", 601, "completion.poll.max_attempts"),
        ("completion.poll.failure.values", ["done"], "one value is success and failure"),
        ("completion.poll.failure.values", [], "must be 1 to 16"),
        ("result.required_json_fields", ["a"] * 17, "contains more than 16"),
        ("result", {}, "result.lifecycle_path is required"),
        ("cleanup", {"kind": "none"}, "cleanup.acknowledged is required"),
        ("cleanup", {"kind": "none", "acknowledged": False}, "cleanup.acknowledged"),
        ("secrets", {f"b{n}": "s" for n in range(9)}, "secrets contains more than 8"),
        ("secrets", {"Key": "s"}, "a binding must match"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_its_field(place: str, value: Any, said: str) -> None:
    with pytest.raises(BadWorkflow) as caught:
        read(changed(POLLED, place, value))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("url", "is_good"),
    [
        (f"https://a.example/{CORRELATION}", True),
        (f"https://a.example/x/{CORRELATION}/y?z=1", True),
        (f"https://a.example/x?job={CORRELATION}", True),
        (f"https://a.example/x?a=1&job={CORRELATION}&b=2", True),
        (f"https://a.example/x-{CORRELATION}", False),
        (f"https://a.example/{CORRELATION}-x", False),
        (f"https://a.example/x?{CORRELATION}=1", False),
        (f"https://a.example/x?job=a{CORRELATION}", False),
        (f"https://a.example/x?job={CORRELATION}a", False),
        (f"https://a.example/#{CORRELATION}", False),
        (f"https://{CORRELATION}/x", False),
        (f"https://{CORRELATION}.example/x", False),
        (f"https://a.example:{CORRELATION}/x", False),
        (f"https://a.example/{CORRELATION}/{CORRELATION}", False),
        ("https://a.example/{{correlation_id}}", False),
        ("https://a.example/{{ secret:key }}/" + CORRELATION, False),
        ("https://a.example/x", False),
        (f"http://a.example/{CORRELATION}", False),
    ],
)
def test_the_placeholder_is_a_whole_segment_or_query_value(url: str, is_good: bool) -> None:
    document = changed(POLLED, "completion.url", url)
    if is_good:
        assert read(document).completion.url == url
    else:
        with pytest.raises(BadWorkflow, match=r"^completion\.url"):
            read(document)


def test_a_number_is_not_read_as_a_boolean() -> None:
    document = changed(POLLED, "completion.poll.success", {"path": "state", "value": 1})
    document = changed(document, "completion.poll.failure", {"path": "state", "values": [True]})
    assert read(document).completion.poll.success.value == 1


def test_an_unknown_fixture_is_refused() -> None:
    with pytest.raises(BadWorkflow, match="fixture_ref"):
        read_workflow(STREAMED, ())


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.sampled_from([*places(POLLED)[1:], "kind", "submit.body", "secrets"]), anything)
def test_any_value_is_read_or_refused(place: str, value: object) -> None:
    with suppress(BadWorkflow):
        assert read(changed(POLLED, place, value)).bindings is not None
