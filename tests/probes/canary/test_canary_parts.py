"""The parts of a canary that need no network: definition, ids and URLs, request bodies, and
comparison of values.
"""

import io
import json
import re
import struct
import wave
import zlib
from email import message_from_bytes
from email.policy import HTTP
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.target import read_url
from leadline.probes.kinds.canary.canary_probe import SPEC
from leadline.probes.kinds.canary.canary_requests import BoundSecrets
from leadline.probes.kinds.canary.correlate import completion_url, is_usable, spelt
from leadline.probes.kinds.canary.fixtures import FIXTURES
from leadline.probes.kinds.canary.json_answer import is_same
from leadline.probes.kinds.canary.submit import idempotency_key, json_body, multipart_body
from leadline.probes.kinds.canary.workflow import (
    CORRELATION,
    BadWorkflow,
    HttpJson,
    Multipart,
    MultipartFixture,
    read_workflow,
)
from tests.support.peers.job_queue import canary_check, polled, streamed

URL = "https://jobs.example/"


def faults(config: dict[str, Any], target: str = "", **given: Any) -> dict[str, str]:
    found = validate("async_canary", target, None, config, given.pop("conditions", []), **given)
    return {fault.field: fault.message for fault in found}


# Definitions.


def test_a_workflow_is_accepted_as_object_and_as_text() -> None:
    refs = {"canary_secret_key_ref": "shop-api"}
    assert faults({"workflow": polled(), **refs}) == {}
    assert faults({"workflow": json.dumps(streamed()), **refs}) == {}
    assert (
        faults({"workflow": polled(), **refs}, timeout_seconds=3_600, interval_seconds=3_600) == {}
    )


@pytest.mark.parametrize(
    ("refs", "field"),
    [
        ({}, "config.canary_secret_key_ref"),
        ({"canary_secret_key_ref": ""}, "config.canary_secret_key_ref"),
        ({"canary_secret_key_ref": "other"}, "config.canary_secret_key_ref"),
        (
            {"canary_secret_key_ref": "shop-api", "canary_secret_more_ref": "shop-api"},
            "config.canary_secret_more_ref",
        ),
        ({"canary_secret_KEY_ref": "shop-api"}, "config.canary_secret_KEY_ref"),
        ({"scenario_secret_key_ref": "shop-api"}, "config.scenario_secret_key_ref"),
    ],
)
def test_a_missing_or_unused_reference_is_named(refs: dict[str, str], field: str) -> None:
    found = faults({"workflow": polled(), **refs})
    assert list(found) == [field]
    assert "shop-api" not in found[field]


def test_an_invalid_document_is_refused_with_its_field() -> None:
    assert faults({}) == {"config.workflow": "is required"}
    found = faults({"workflow": polled(surplus=1), "canary_secret_key_ref": "shop-api"})
    assert found == {"config.workflow": "surplus is not known"}
    assert "target" in faults({"workflow": polled()}, target="https://jobs.example/")
    assert "conditions" in faults(
        {"workflow": polled(), "canary_secret_key_ref": "shop-api"}, conditions=["[STATUS] == 200"]
    )


def test_a_canary_has_no_retries() -> None:
    found = faults({"workflow": polled(), "canary_secret_key_ref": "shop-api"}, retries=1)
    assert list(found) == ["retries"]


def test_the_documented_example_is_valid() -> None:
    text = (Path(__file__).parents[3] / "docs/reference/canaries.md").read_text()
    (example,) = re.findall(r"```json\n(\{\"kind\": \"async.*?)```", text, re.DOTALL)
    assert faults({"workflow": example, "canary_secret_key_ref": "shop-api"}) == {}


def test_the_declared_secrets_of_a_document_are_listed() -> None:
    assert [field.name for field in SPEC.declared({"workflow": polled()})] == [
        "canary_secret_key_ref"
    ]
    assert SPEC.declared({"workflow": {"kind": 1}}) == []
    assert next(field for field in SPEC.fields if field.name == "workflow").secret


@pytest.mark.parametrize(
    "multipart",
    [
        {"headers": [{"name": "Content-Type", "value": "text/plain"}]},
        {"multipart": {"field": "f", "filename": "a", "fields": {"a": "\ud800"}}},
    ],
)
def test_an_invalid_multipart_form_is_refused(multipart: dict[str, Any]) -> None:
    submit = {
        "kind": "multipart_fixture",
        "url": URL,
        "submit_timeout": 10,
        "accepted_status": [202],
        "fixture_ref": "png",
        "multipart": {"field": "file", "filename": "a.png"},
    }
    read_workflow(polled(submit=submit), FIXTURES)
    with pytest.raises(BadWorkflow):
        read_workflow(polled(submit=submit | multipart), FIXTURES)


def test_no_repr_of_a_run_contains_a_secret() -> None:
    workflow = polled(submit={"body": {"a": "tr0ub4dor"}})
    read = read_workflow(workflow, FIXTURES)
    check = canary_check(workflow, secrets={"canary_secret_key": "tr0ub4dor"}, run_key="tr0ub4dor")
    for value in (read, read.submit, read.completion, BoundSecrets({"key": "tr0ub4dor"}), check):
        assert "tr0ub4dor" not in repr(value)
    assert "jobs.example" not in repr(read)


# Ids and URLs.


@pytest.mark.parametrize(
    "said", ["", ".", "..", "a\nb", "\0", "\x7f", "\x85", "a" * 257, "é" * 129]
)
def test_an_unsafe_or_long_id_is_refused(said: str) -> None:
    assert not is_usable(said)


def test_numbers_are_valid_ids() -> None:
    assert is_usable("a" * 256)
    assert is_usable("...")
    assert not is_usable("\ud800")
    assert spelt(7) == "7"
    assert spelt(10**400) == ""


usable = st.text(max_size=64).filter(is_usable) | st.text("/?&#=%.+; é", min_size=1).filter(
    is_usable
)
templates = st.sampled_from(
    [
        f"{URL}{CORRELATION}",
        f"{URL}a/{CORRELATION}/b?c=d#e",
        f"{URL}a?id={CORRELATION}",
        f"{URL}a?é=ü&id={CORRELATION}&x=-#f",
        f"https://jobs.example:8443/é-/{CORRELATION}/-/x",
    ]
)


@given(templates, usable)
def test_an_id_stays_one_segment_or_query_value(template: str, said: str) -> None:
    url = completion_url(template, said)
    assert url == read_url(template.replace(CORRELATION, quote(said, safe="")))
    around = read_url(template.replace(CORRELATION, "x"))
    assert url.origin == around.origin
    path, query = urlsplit(str(url)).path, urlsplit(str(url)).query
    sample_path, sample_query = urlsplit(str(around)).path, urlsplit(str(around)).query
    assert path.count("/") == sample_path.count("/")
    assert query.count("&") == sample_query.count("&")
    values = [*path.split("/"), *(pair.partition("=")[2] for pair in query.split("&"))]
    assert said in [unquote(value) for value in values]


# Request bodies.


@given(st.text())
def test_an_idempotency_key_is_alphanumeric_and_of_its_run(run_key: str) -> None:
    key = idempotency_key(canary_check(polled(), run_key=run_key))
    assert key.isalnum()
    again = idempotency_key(canary_check(streamed(), run_key=run_key))
    assert (again == key) is (run_key != "")


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(st.dictionaries(st.from_regex(r"\A[A-Za-z0-9._-]{1,64}\Z"), texts, max_size=4))
@pytest.mark.parametrize("fixture", sorted(FIXTURES))
def test_a_multipart_form_survives_a_round_trip(fixture: str, fields: dict[str, str]) -> None:
    submit = MultipartFixture(
        url=URL,
        submit_timeout=1,
        accepted_status=[202],
        fixture_ref=fixture,
        multipart=Multipart(field="file", filename="a.bin", fields=fields),
    )
    key = idempotency_key(canary_check(polled()))
    body, media_type = multipart_body(submit, key)
    assert (body, media_type) == multipart_body(submit, key)
    *said, file, end = body.split(f"--{key}".encode())[1:]
    assert end == b"--\r\n"
    parts = [part.removeprefix(b"\r\n").partition(b"\r\n\r\n") for part in said]
    names = [head.partition(b'name="')[2].rstrip(b'"').decode() for head, _, _ in parts]
    assert dict(zip(names, (v[:-2].decode() for _, _, v in parts), strict=True)) == fields
    head, _, content = file.partition(b"\r\n\r\n")
    assert content[:-2] == FIXTURES[fixture].content
    read = message_from_bytes(head.removeprefix(b"\r\n"), policy=HTTP)
    assert read["content-disposition"].params == {"name": "file", "filename": "a.bin"}
    assert read["content-type"].content_type == FIXTURES[fixture].media_type.partition(";")[0]


def test_a_json_body_survives_a_round_trip() -> None:
    body = {"é": [1, 2.5, None, True, "\u2028"]}
    submit = HttpJson(url=URL, submit_timeout=1, accepted_status=[200], body=body)
    assert json.loads(json_body(submit)) == body


def test_every_fixture_is_valid_for_its_type() -> None:
    said = {name: fixture.content for name, fixture in FIXTURES.items()}
    assert msgspec.json.decode(said["json"])
    assert len(said["csv"].splitlines()) == 2
    with wave.open(io.BytesIO(said["wav"])) as sound:
        assert (sound.getnchannels(), sound.getnframes()) == (1, 2_000)
    at, pixels = 8, b""
    while at < len(said["png"]):
        size, name = struct.unpack(">I4s", said["png"][at : at + 8])
        data, crc = said["png"][at + 8 : at + 8 + size], said["png"][at + 8 + size : at + 12 + size]
        assert zlib.crc32(name + data) == int.from_bytes(crc, "big")
        pixels += data if name == b"IDAT" else b""
        at += 12 + size
    assert len(zlib.decompress(pixels)) == 8 * 9
    pdf = said["pdf"]
    table = int(pdf.partition(b"startxref\n")[2].split(b"\n")[0])
    for number, line in enumerate(pdf[table:].split(b"\n")[3:8], 1):
        assert pdf[int(line[:10]) :].startswith(b"%d 0 obj" % number)
    assert all(len(content) < 8_192 for content in said.values())


# Comparison of values.


@pytest.mark.parametrize(
    ("found", "wanted", "same"),
    [
        ("done", "done", True),
        ("1", 1, False),
        (1, "1", False),
        (1, 1, True),
        (1.0, 1, True),
        (True, True, True),
        (1, True, False),
        (True, 1, False),
        (False, 0, False),
        (None, False, False),
        (None, "", False),
        ([1], 1, False),
    ],
)
def test_comparison_includes_the_type(found: object, wanted: Any, same: bool) -> None:
    assert is_same(found, wanted) is same
