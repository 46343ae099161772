"""Messages between a server and its agents: settings as strings, capabilities, generations."""

from leadline.probes.jobs.agent_protocol import (
    Generation,
    generation_of,
    is_capable,
    read_kinds,
    spelt,
)


def test_every_setting_is_encoded_as_a_string() -> None:
    config = {
        "text": "a b",
        "yes": True,
        "no": False,
        "number": 7,
        "list": [1, "b"],
        "map": {"a": [1, None]},
        "blank": "",
        "missing": None,
    }
    assert spelt(config) == {
        "text": "a b",
        "yes": "true",
        "no": "false",
        "number": "7",
        "list": "1,b",
        "map": '{"a":[1,null]}',
        "blank": "",
    }


def test_a_monitor_with_secrets_needs_a_carrier_for_passwords() -> None:
    assert generation_of("http", has_secrets=False) is Generation.PLAIN
    assert generation_of("http", has_secrets=True) is Generation.PASSWORDS


def test_types_without_a_capability_run_on_any_agent() -> None:
    assert is_capable("http", ())
    assert read_kinds(" a, b,,a ") == {"a", "b"}
    assert read_kinds("") == frozenset()
