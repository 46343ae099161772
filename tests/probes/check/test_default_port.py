"""Targets without a port."""

import pytest

from leadline.probes.check.registry import spec_of
from leadline.probes.check.target import BadTarget, read_host_port


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("db.example", ("db.example", 5432)),
        ("db.example:1", ("db.example", 1)),
        ("[::1]", ("::1", 5432)),
        ("[::1]:1", ("::1", 1)),
        ("192.0.2.1", ("192.0.2.1", 5432)),
    ],
)
def test_a_port_can_be_left_out(text: str, expected: tuple[str, int]) -> None:
    assert read_host_port(text, 5432) == expected


@pytest.mark.parametrize("text", ["", ":", "db.example:", "::1", "db.example:x", "a b"])
def test_a_default_port_makes_no_bad_target_valid(text: str) -> None:
    with pytest.raises(BadTarget):
        read_host_port(text, 5432)


def test_without_a_default_the_port_is_required() -> None:
    with pytest.raises(BadTarget):
        read_host_port("db.example")


def test_each_protocol_has_its_port() -> None:
    kinds = ("postgres", "mysql", "redis", "rabbitmq", "ssh", "smtp", "tls", "grpc", "tcp")
    specs = {kind: spec_of(kind) for kind in kinds}
    found = {kind: spec.default_port for kind, spec in specs.items() if spec is not None}
    assert found == {
        "postgres": 5432,
        "mysql": 3306,
        "redis": 6379,
        "rabbitmq": 5672,
        "ssh": 22,
        "smtp": 25,
        "tls": 443,
        "grpc": 443,
        # Any protocol.
        "tcp": None,
    }
