"""Local failures never make a target down, for every monitor type."""

import gc
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dns.rcode
import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.monitor_spec import FieldType
from leadline.probes.check.registry import FILES, spec_of
from leadline.probes.check.result import FailureClass, RunOutcome, UnknownReason
from leadline.probes.net import asyncio_thread
from tests.support.peers.kind_forms import FORMS, HOST, leaving, playing, run_form
from tests.support.peers.servers import Names, Prober

# The other settings that each secret reference needs to be used.
CERTIFICATE = "client_cert"
OAUTH2 = {
    "auth_mode": "oauth2",
    "oauth2_token_url": "http://127.0.0.1:1/",
    "oauth2_client_id": "watcher",
}
PROXY = {"proxy_url": "http://127.0.0.1:1", "proxy_username": "watcher"}
REFERENCES: dict[tuple[str, str], dict[str, Any]] = {
    ("http", "password_ref"): {"auth_mode": "basic", "username": "watcher"},
    ("http", "token_ref"): {"auth_mode": "bearer"},
    ("promql", "password_ref"): {"query": "up", "auth_mode": "basic", "username": "watcher"},
    ("grpc", "client_key_ref"): {"tls": True, CERTIFICATE: ""},
    **{(kind, "client_key_ref"): {CERTIFICATE: ""} for kind in ("http", "websocket")},
    ("promql", "client_key_ref"): {"query": "up", CERTIFICATE: ""},
    **{(kind, "oauth2_client_secret_ref"): OAUTH2 for kind in ("http", "websocket")},
    ("promql", "oauth2_client_secret_ref"): {"query": "up", **OAUTH2},
    **{(kind, "proxy_password_ref"): PROXY for kind in ("http", "websocket")},
    ("promql", "proxy_password_ref"): {"query": "up", **PROXY},
    ("postgres", "password_ref"): {"username": "watcher"},
    ("mysql", "password_ref"): {"username": "watcher"},
    ("redis", "password_ref"): {},
    ("rabbitmq", "password_ref"): {"username": "watcher"},
    ("ssh", "password_ref"): {"username": "watcher"},
    ("ssh", "private_key_ref"): {"username": "watcher"},
    ("smtp", "password_ref"): {"username": "watcher", "encryption": "tls"},
}
TARGETS = {
    "http": "https://127.0.0.1:1/",
    "promql": "https://127.0.0.1:1/",
    "websocket": "wss://127.0.0.1:1/",
}


def test_every_secret_reference_is_tested() -> None:
    known = {
        (kind, field.name)
        for kind in FILES
        if (spec := spec_of(kind)) is not None
        for field in spec.fields
        if field.type is FieldType.SECRET_NAME
    }
    assert known == REFERENCES.keys()


@pytest.mark.parametrize(("kind", "setting"), REFERENCES, ids="-".join)
@pytest.mark.parametrize("retries", [0, 2])
async def test_a_missing_secret_is_reported_before_connecting(
    prober: Prober, authority: trustme.CA, kind: str, setting: str, retries: int
) -> None:
    config = {**REFERENCES[kind, setting], setting: "gone"}
    if CERTIFICATE in config:
        chain = authority.issue_cert("us.example").cert_chain_pems
        config[CERTIFICATE] = b"".join(blob.bytes() for blob in chain).decode()
    target = TARGETS.get(kind, f"{HOST}:1")
    assert validate(kind, target, None, config, []) == []
    result = await prober.check(kind, target, retries=retries, timeout_seconds=2, **config)
    assert result.unknown_reason is UnknownReason.MISSING_REFERENCE
    assert result.outcome is RunOutcome.UNKNOWN


@contextmanager
def no_descriptors(but: int = 0) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + but, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_exhausted_descriptors_are_a_local_failure(
    prober: Prober, authority: trustme.CA
) -> None:
    for form in FORMS:
        async with playing(form, leaving, authority) as port:
            # The first run loads and keeps its modules and contexts.
            await run_form(prober, form, port)
            with no_descriptors():
                result = await run_form(prober, form, port)
        assert result.unknown_reason is UnknownReason.LOCAL_RESOURCES, f"{form}: {result}"


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
async def test_a_failed_start_of_asyncio_is_a_local_failure(
    prober: Prober, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asyncio_thread, "_loops", [])
    for form in (form for form in FORMS if form.kind == "ssh" and form.config):
        async with playing(form, leaving, authority) as port:
            # Enough descriptors for the connection, and none for the internal ones of asyncio.
            with no_descriptors(but=2):
                result = await run_form(prober, form, port)
        assert result.unknown_reason is UnknownReason.LOCAL_RESOURCES, f"{form}: {result}"
        assert asyncio_thread._loops == []
        gc.collect()


@pytest.mark.parametrize("said", [None, dns.rcode.SERVFAIL])
async def test_a_dead_resolver_is_a_local_failure(
    prober: Prober, names: Names, said: object
) -> None:
    names.root = said
    names.records["shop.example", "A"] = [said]
    names.records["shop.example", "AAAA"] = [said]
    wrong: list[str] = []

    async def judge(number: int) -> None:
        result = await run_form(prober, FORMS[number], 9, "shop.example")
        if result.unknown_reason is not UnknownReason.RESOLVER_DEAD:
            wrong.append(f"{FORMS[number]}: {result}")

    async with trio.open_nursery() as nursery:
        for number in range(len(FORMS)):
            nursery.start_soon(judge, number)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("said", [dns.rcode.NXDOMAIN, dns.rcode.SERVFAIL, []])
async def test_an_unknown_name_is_a_target_failure(
    prober: Prober, names: Names, said: object
) -> None:
    names.records["shop.example", "A"] = [said]
    names.records["shop.example", "AAAA"] = [said]
    for form in FORMS:
        result = await run_form(prober, form, 9, "shop.example")
        assert result.msg.startswith(FailureClass.DNS_ERROR), f"{form}: {result}"
