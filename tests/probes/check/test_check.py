"""Validation of definitions: all faults are reported together, with the name of the field and
without its value.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.check import make_check, target_host, validate
from leadline.probes.check.monitor_spec import MonitorType, SpecFault
from leadline.probes.check.registry import FILES, spec_of
from leadline.probes.check.target import BadTarget, read_url, redirected

URL = "https://api.example.com/health"


def fields(kind: str, target: str, *conditions: str, **config: Any) -> list[str]:
    return [fault.field for fault in validate(kind, target, "GET", config, conditions)]


def test_valid_definitions_have_no_fault() -> None:
    assert validate("http", URL, "GET", {}, []) == []
    assert validate("http", URL, None, {}, ["[STATUS] == 200", "[CERT_EXPIRY] > 48h"]) == []
    assert (
        validate("tcp", "db.example.com:5432", None, {"send": "PING\r\n"}, ["[BODY] exists"]) == []
    )
    assert validate("push", "", None, {}, []) == []


def test_all_faults_are_reported_together() -> None:
    faults = validate(
        "http",
        "ftp://x",
        "PATCH",
        {"surplus": 1, "follow_redirects": "perhaps", "headers": {"a b": "c"}},
        ["[STATUS] == x"],
        retries=99,
        timeout_seconds=301,
        interval_seconds=1,
    )
    assert {fault.field for fault in faults} == {
        "target",
        "method",
        "config.surplus",
        "config.follow_redirects",
        "config.headers",
        "conditions",
        "retries",
        "timeout_seconds",
        "interval_seconds",
    }


@pytest.mark.parametrize("kind", [*MonitorType, "gopher"])
def test_a_type_that_this_build_cannot_probe_is_a_fault_on_type(kind: str) -> None:
    faulty_fields = [f.field for f in validate(kind, "", None, {}, [])] == ["type"]
    assert faulty_fields is (kind not in FILES)


@pytest.mark.parametrize(
    "target",
    [
        "",
        "api.example.com",
        "//api.example.com",
        "ftp://api.example.com/",
        "https://",
        "https://user@api.example.com/",
        "https://user:hunter2@api.example.com/",
        "https://@api.example.com/",
        "https://api.example.com\\@evil.example/",
        "https://api.example.com:0/",
        "https://api.example.com:65536/",
        "https://api.example.com:x/",
        "https://api example.com/",
        "https://api.example.com/a b",
        "https://api.example.com/\n",
        "https://exa%6dple.com/",
        "https://-a.example/",
        "https://a..example/",
        "https://127.1/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://1.2.3.4.5/",
        "https://256.1.1.1/",
        "https://010.0.0.1/",
        "https://10.0.0.01/",
        "https://00.0.0.0/",
        "https://[::1/",
        "https://[::g]/",
        "https://" + "a" * 64 + ".example/",
        "https://" + "a." * 1_500 + "example/",
    ],
)
def test_an_ambiguous_target_is_refused(target: str) -> None:
    faults = validate("http", target, "GET", {}, [])
    assert [fault.field for fault in faults] == ["target"]
    assert "hunter2" not in faults[0].message


@pytest.mark.parametrize(
    ("target", "host"),
    [
        (URL, "api.example.com"),
        ("HTTP://API.Example.COM.:80/", "api.example.com"),
        ("http://[::1]:8080/", "::1"),
        ("http://[FE80::1%25eth0]/", None),
        ("http://127.0.0.1/", "127.0.0.1"),
        ("http://bücher.example/", "xn--bcher-kva.example"),
        ("http://a_b.internal/", "a_b.internal"),
        ("http://localhost", "localhost"),
        ("http://1.example", "1.example"),
    ],
)
def test_the_host_of_a_target(target: str, host: str | None) -> None:
    assert target_host("http", target) == (host or "")


@pytest.mark.parametrize(
    ("target", "ok"),
    [
        ("db.example.com:5432", True),
        ("[::1]:22", True),
        ("::1:22", False),
        ("db.example.com", False),
        ("db.example.com:", False),
        ("db.example.com:0", False),
        ("db.example.com:٣", False),
        ("tcp://db.example.com:1", False),
        ("joe@db.example.com:1", False),
    ],
)
def test_host_and_port(target: str, ok: bool) -> None:
    assert (fields("tcp", target) == []) is ok


def test_numbers_and_booleans_can_be_strings() -> None:
    check = make_check(
        "http", URL, None, {"follow_redirects": "false", "tls_skip_verify": "TRUE"}, []
    )
    assert check.config["follow_redirects"] is False
    assert check.config["tls_skip_verify"] is True
    assert make_check("http", URL, None, {}, []).config["follow_redirects"] is True


def test_headers_can_be_a_json_string() -> None:
    check = make_check("http", URL, None, {"headers": '{"X-One": "1"}'}, [])
    assert check.config["headers"] == {"X-One": "1"}
    for wrong in ("[1]", "{", 5, {"a": 1}, {"a": "b\r\nc: d"}, {"Content-Length": "5"}, {"": "x"},
                  {"A": "1", "a": "2"}, {"a": "x" * 5_000}, {f"h{n}": "" for n in range(40)},
                  "[" * 50_000):  # fmt: skip
        assert fields("http", URL, headers=wrong) == ["config.headers"], wrong


def test_authentication_needs_its_credentials() -> None:
    assert fields("http", URL, auth_mode="basic") == ["config.username", "config.password"]
    assert fields("http", URL, auth_mode="basic", username="joe", password="x") == []
    assert fields("http", URL, auth_mode="basic", username="joe", password_ref="db-pass") == []
    assert fields("http", URL, auth_mode="basic", username="j:oe", password="x") == [
        "config.username"
    ]
    assert fields("http", URL, auth_mode="bearer") == ["config.token_ref"]
    assert fields("http", URL, auth_mode="bearer", token_ref="Not A Name") == ["config.token_ref"]
    assert fields("http", URL, auth_mode="digest") == ["config.auth_mode"]
    twice = {"headers": {"Authorization": "x"}, "auth_mode": "bearer", "token_ref": "t"}
    assert fields("http", URL, **twice) == ["config.headers"]


def test_condition_faults_have_numbers_and_check_the_type() -> None:
    faults = validate("tcp", "a:1", None, {}, ["[CONNECTED] == true", "[STATUS] == 200", "x"])
    assert faults == [
        SpecFault("conditions", "condition 2: [STATUS] is never known for tcp"),
        SpecFault(
            "conditions", "condition 3, at 1: must begin with a placeholder, such as [STATUS]"
        ),
    ]
    assert fields("http", URL, *["[STATUS] == 200"] * 21) == ["conditions"]
    assert fields("http", URL, *["[BODY] matches \\pL+ \\pL+"] * 3) == ["conditions"]
    assert fields("push", "", "[STATUS] == 200") == ["conditions"]


def test_times_are_bounded() -> None:
    def faulty_fields(**times: int) -> list[str]:
        return [fault.field for fault in validate("http", URL, None, {}, [], **times)]

    assert faulty_fields(timeout_seconds=30, interval_seconds=30) == []
    assert faulty_fields(timeout_seconds=31, interval_seconds=30) == ["timeout_seconds"]
    assert faulty_fields(timeout_seconds=0) == ["timeout_seconds"]
    assert faulty_fields(interval_seconds=86_401) == ["interval_seconds"]
    assert faulty_fields(retries=-1) == ["retries"]


def test_every_spec_is_complete() -> None:
    """What the forms and docs read: help everywhere, choices with their default, no twin names."""
    for kind in FILES:
        spec = spec_of(kind)
        assert spec is not None
        assert spec.type == kind
        assert spec.help
        assert len({field.name for field in spec.fields}) == len(spec.fields)
        for field in spec.fields:
            assert field.help
            assert not field.choices or field.default is None or field.default in field.choices
            assert not field.secret or field.default is None


def test_the_repr_of_a_check_has_no_secrets() -> None:
    check = make_check("http", URL, None, {}, [], secrets={"token": "hunter2"})
    assert "hunter2" not in repr(check)


@given(
    st.sampled_from(["http", "tcp", "push", "dns", "x"]),
    st.text(max_size=30),
    st.dictionaries(
        st.sampled_from(["headers", "body", "auth_mode", "send", "password", "ip_family", "z"]),
        st.none() | st.text(max_size=5) | st.integers() | st.booleans() | st.lists(st.none()),
        max_size=4,
    ),
    st.lists(st.text(max_size=12), max_size=3),
)
def test_validation_never_raises(
    kind: str, target: str, config: dict[str, Any], conditions: list[str]
) -> None:
    for fault in validate(kind, target, "GET", config, conditions):
        assert fault.field
        assert fault.message


@given(st.text(max_size=40))
def test_a_redirect_target_is_an_http_url_without_userinfo(location: str) -> None:
    base = read_url(URL)
    try:
        url = redirected(base, location)
    except BadTarget:
        return
    assert url.scheme in ("http", "https")
    assert url.path.startswith("/")
    assert all("!" <= c <= "~" for c in url.path)
    assert read_url(str(url)) == url
