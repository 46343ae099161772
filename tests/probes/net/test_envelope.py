"""An envelope opens only with the token and the job that it was sealed for."""

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.jobs.agent_protocol import Generation, Job
from leadline.probes.jobs.envelope import BadEnvelope, Contents, open_envelope, seal

TOKEN = "leadline_agent_" + "a" * 43
NOW = "2026-11-22T12:00:00.123Z"
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def job(carrier: int = Generation.PASSWORDS, **changes: Any) -> Job:
    values: dict[str, Any] = {
        "job_id": UUID(int=1),
        "monitor_id": UUID(int=2),
        "due_at": NOW,
        "type": "http",
        "target": "https://shop.example/",
        "config": {"auth_mode": "basic", "password_ref": "shop"},
        "revision": 3,
        "timeout_seconds": 10,
        "interval_seconds": 60,
        "anchor": NOW,
        "lease_expires_at": NOW,
        "carrier": int(carrier),
    }
    return Job(**values | changes)


def sealed(contents: Contents, token: str = TOKEN, **changes: Any) -> dict[str, Any]:
    """Returns the sealed job as an agent receives it."""
    made = seal(job(**changes), contents, token, b"s" * 32, b"n" * 12)
    received: dict[str, Any] = json.loads(msgspec.json.encode(made))
    return received


@given(st.dictionaries(texts, texts, max_size=5), st.dictionaries(texts, texts, max_size=5), texts)
def test_an_envelope_survives_a_round_trip(
    config: dict[str, str], secrets: dict[str, str], target: str
) -> None:
    contents = Contents(config=config, secrets=secrets)
    assert open_envelope(sealed(contents, target=target), TOKEN) == contents


def test_a_secret_is_only_inside_the_envelope() -> None:
    received = sealed(Contents(secrets={"password": "horse-battery"}))
    assert "horse-battery" not in json.dumps(received)


def test_another_token_does_not_open_an_envelope() -> None:
    with pytest.raises(BadEnvelope, match="does not open"):
        open_envelope(sealed(Contents()), TOKEN[:-1] + "b")


@pytest.mark.parametrize("field", sorted(json.loads(msgspec.json.encode(job()))))
def test_an_envelope_is_bound_to_every_field_of_its_job(field: str) -> None:
    received = sealed(Contents())
    received[field] = {"carrier": 1}.get(field, "other")
    with pytest.raises(BadEnvelope, match="does not open"):
        open_envelope(received, TOKEN)


def test_an_added_or_omitted_field_breaks_an_envelope() -> None:
    received = sealed(Contents())
    with pytest.raises(BadEnvelope, match="does not open"):
        open_envelope(received | {"more": 1}, TOKEN)
    del received["conditions"]
    with pytest.raises(BadEnvelope, match="does not open"):
        open_envelope(received, TOKEN)


def test_an_unknown_field_of_a_newer_server_is_authenticated() -> None:
    """A field that only a newer server knows is authenticated, and the envelope opens here."""
    received = sealed(Contents(secrets={"password": "x"}))
    struct = msgspec.convert({k: v for k, v in received.items() if k != "envelope"}, Job)
    assert struct == job()


def test_an_envelope_older_than_its_carrier_is_refused() -> None:
    made = seal(job(), Contents(), TOKEN, b"s" * 32, b"n" * 12)
    received = json.loads(msgspec.json.encode(made))
    received["carrier"] = int(Generation.SCENARIOS)
    with pytest.raises(BadEnvelope, match="is older than its carrier"):
        open_envelope(received, TOKEN)


@pytest.mark.parametrize(
    "envelope",
    [
        None,
        {},
        {"kind": "credentials@2", "salt": "!", "nonce": "", "ciphertext": ""},
        {"kind": "credentials@2", "salt": "", "nonce": "", "ciphertext": ""},
        {"kind": "credentials@2", "salt": 1, "nonce": "", "ciphertext": ""},
    ],
)
def test_garbage_is_refused_as_unreadable(envelope: object) -> None:
    with pytest.raises(BadEnvelope, match="cannot be read"):
        open_envelope(sealed(Contents()) | {"envelope": envelope}, TOKEN)


def test_an_unknown_kind_is_refused() -> None:
    received = sealed(Contents())
    received["envelope"]["kind"] = "plain@1"
    with pytest.raises(BadEnvelope, match="of a kind that is not known"):
        open_envelope(received, TOKEN)


@pytest.mark.parametrize(("salt", "nonce"), [(b"s", b"n" * 12), (b"s" * 32, b"")])
def test_salt_and_nonce_must_have_their_length(salt: bytes, nonce: bytes) -> None:
    with pytest.raises(ValueError, match="random bytes"):
        seal(job(), Contents(), TOKEN, salt, nonce)
