"""A secret setting of a channel names a project secret, or has its value, and never both."""

import json
from base64 import b64encode
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders.deliver import SPECS
from leadline.probes.senders.personal import PERSONAL_SPECS
from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.engine.keyring import Keyring
from leadline.storage.notifications.rows import ChannelRow
from leadline.storage.notifications.transactions.channel_secrets import (
    is_broken,
    merged,
    opened,
    place_of_secret,
    references_of,
)

SLACK = SPECS["slack"]
URL = "https://hooks.slack.com/services/T/B/x"


@pytest.mark.parametrize("kind", sorted(SPECS))
def test_every_secret_can_be_a_reference(kind: str) -> None:
    spec = SPECS[kind]
    assert set(spec.references.values()) == spec.secrets
    names = {f"config.{name}" for name in spec.secrets}
    referred = dict.fromkeys(spec.references, "name")
    assert not names & {fault.field for fault in spec.faults(referred)}
    for key, name in spec.references.items():
        both = [(fault.field, fault.message) for fault in spec.faults({key: "a", name: "x"})]
        assert both == [(f"config.{key}", "must not be given with the value")]
        (bad, *_) = spec.faults({key: "No name"})
        assert (bad.field, bad.message) == (f"config.{key}", "must be the name of a project secret")
    for setting in {one.name for one in spec.settings} - spec.secrets:
        wrong = [fault.field for fault in spec.faults({f"{setting}_ref": "a"})]
        assert f"config.{setting}_ref" in wrong


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [{}, {"url": ""}, {"url": URL}, {"url_ref": "a"}, {"url_ref": "b", "url": ""}, {"url_ref": ""}]
)


@given(st.sampled_from([{"url": URL}, {"url_ref": "old"}]), VALUES)
def test_an_edit_leaves_one_of_value_and_reference(
    before: dict[str, str], change: dict[str, str]
) -> None:
    try:
        after = merged(SLACK, before, change)
    except Refused as refused:
        # Only the removal of the one that is stored leaves none.
        assert before.get("url_ref")
        assert (refused.field, change) == ("config.url", {"url_ref": ""})  # noqa: PT017
        return
    assert ("url" in after) != ("url_ref" in after)
    wanted = {key: value for key, value in change.items() if value}
    assert after == (wanted or before)
    assert references_of(SLACK, after) == {k: v for k, v in after.items() if k == "url_ref"}


@pytest.mark.parametrize("kind", sorted(PERSONAL_SPECS))
def test_a_contact_method_has_no_references(kind: str) -> None:
    spec = PERSONAL_SPECS[kind]
    assert spec.references == {}
    for name in spec.secrets | {"url"}:
        faults = spec.faults({f"{name}_ref": "a"})
        assert f"config.{name}_ref" in {fault.field for fault in faults}


@pytest.mark.parametrize(
    ("kind", "plain", "key", "value"),
    [
        ("slack", {}, "url_ref", URL),
        ("webhook", {"url": "https://x.example.org/"}, "secret_ref", f"whsec_{'k' * 32}"),
        ("ntfy", {"topic": "a"}, "token_ref", "tk_1"),
    ],
)
def test_a_channel_without_its_secret_is_broken(
    kind: str, plain: dict[str, str], key: str, value: str
) -> None:
    keyring, secret = Keyring(bytes(32)), uuid4()

    def row(referred: dict[str, Any]) -> ChannelRow:
        return ChannelRow(
            org=1,
            id=1,
            uid=uuid4(),
            project=1,
            project_uid=uuid4(),
            type=kind,
            name="Ops",
            config=json.dumps({**plain, key: "gone"}),
            config_ciphertext=None,
            enabled=True,
            created_at=Instant(0),
            referred=json.dumps(referred),
        )

    without = row({})
    assert is_broken(without, opened(without, keyring))
    sealed = b64encode(keyring.seal(value.encode(), place_of_secret(secret))).decode()
    found = row({key: [str(secret), sealed]})
    assert opened(found, keyring) == {**plain, key.removesuffix("_ref"): value}
    assert not is_broken(found, opened(found, keyring))
