"""The text of a measured value: what is shown, what is withheld, and that no secret is shown."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.probes.check.check import Check, make_check
from leadline.probes.check.condition import CONDITION_LONGEST, parse
from leadline.probes.check.condition_evaluation import AllOf, ProbeValues, evaluate
from leadline.probes.check.measured_value import (
    MEASURED_LONGEST,
    NO_VALUE,
    NOT_SCALAR,
    SECRET,
    SHOWN_LONGEST,
    TOO_LONG,
    is_admissible,
    measured_value,
)
from leadline.probes.check.result import FailedCondition
from leadline.storage.monitors.rules.fields import BOUNDS

HOUR, DAY = 3_600_000_000, 86_400_000_000


def check_of(*, show_values: bool = False, **more: Any) -> Check:
    return make_check("http", "https://a.example", None, {}, [], show_values=show_values, **more)


def shown(text: str, check: Check | None = None, **facts: Any) -> str | None:
    condition, values = parse(text), ProbeValues(**facts)
    assert not evaluate(condition, values), "only a false condition has a measured value"
    return measured_value(condition, values, check or check_of())


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("[STATUS] == 200", {"status": 503}, "503"),
        ("[RESPONSE_TIME] < 800", {"response_time_ms": 1_204}, "1 204 ms"),
        ("[RESPONSE_TIME] > 1h", {"response_time_ms": 1_234_567}, "1 234 567 ms"),
        ("[CONNECTED] == false", {"connected": True}, "true"),
        ("[CONNECTED] == true", {"connected": False}, "false"),
        ("[CERT_EXPIRY] > 14", {"cert_expiry_us": 13 * DAY + 4 * HOUR}, "13 d 4 h"),
        ("[CERT_EXPIRY] > 48h", {"cert_expiry_us": 5 * HOUR + 1}, "5 h 0 min"),
        ("[CERT_EXPIRY] > 48h", {"cert_expiry_us": 61_000_000}, "1 min 1 s"),
        ("[CERT_EXPIRY] > 48h", {"cert_expiry_us": -26 * HOUR}, "-1 d 2 h"),
        ("[IP] == 10.0.0.1", {"ip": "10.0.0.2"}, "10.0.0.2"),
        ("[IP] == 10.0.0.1", {"ip": "2001:db8::1"}, "2001:db8::1"),
        ("[RESULT] < 5", {"result": 7}, "7"),
        ("[RESULT] < 5", {"result": "7.50 "}, "7.50"),
        ("[RESULT] < 5", {"result": float("nan")}, "nan"),
        ("[RESULT] < 5", {"result": AllOf((1, 7, 9))}, "7"),
        ("[RESULT] < 5", {"result": AllOf(())}, NO_VALUE),
        ("[STATUS] == 200", {}, NO_VALUE),
        ("[BODY].a == 1", {"body": "{}"}, NO_VALUE),
        ("[HEADER].x-a exists", {}, NO_VALUE),
    ],
)
def test_a_measured_number_is_always_shown(text: str, facts: dict[str, Any], expected: str) -> None:
    assert shown(text, **facts) == expected
    assert is_admissible(text, expected, show_values=False)


@pytest.mark.parametrize(
    ("text", "facts", "expected"),
    [
        ("[BODY].s == UP", {"body": '{"s": "DOWN"}'}, '"DOWN"'),
        ("[BODY].s == UP", {"body": '{"s": "a\\n\\"b"}'}, '"a\\n\\"b"'),
        ("[BODY].s == UP", {"body": '{"s": ""}'}, '""'),
        ("[BODY].s == UP", {"body": '{"s": null}'}, "null"),
        ("[BODY].s == UP", {"body": '{"s": true}'}, "true"),
        ("[BODY].s == UP", {"body": '{"s": 1.5}'}, "1.5"),
        ("[BODY].s == UP", {"body": '{"s": [1]}'}, NOT_SCALAR),
        ("[BODY].s == UP", {"body": '{"s": {}}'}, NOT_SCALAR),
        ("[BODY] == ok", {"body": "n" * 64}, f'"{"n" * 64}"'),
        ("[BODY] == ok", {"body": "n" * 65}, TOO_LONG),
        ("[HEADER].x-a == ok", {"headers": {"x-a": "no"}}, '"no"'),
        ("[RESULT] == ok", {"result": "no"}, '"no"'),
        ("[RESULT] == ok", {"result": True}, "true"),
    ],
)
def test_content_is_shown_only_if_the_monitor_shows_values(
    text: str, facts: dict[str, Any], expected: str
) -> None:
    assert shown(text, **facts) is None
    assert shown(text, check_of(show_values=True), **facts) == expected
    assert is_admissible(text, expected, show_values=True)


def test_a_value_with_a_secret_of_the_check_is_not_shown() -> None:
    config = {
        "headers": {"Authorization": "Bearer t0ken-of-header", "X-Plain": "plain"},
        "username": "me",
        "password": "pass word",
        "body": "",
    }
    check = make_check(
        "http",
        "https://a.example",
        None,
        config,
        [],
        secrets={"token": "ref-token-value"},
        show_values=True,
    )
    basic = b64encode(b"me:pass word").decode()
    for leak in (
        "Bearer t0ken-of-header",
        "t0ken-of-header",
        "got t0ken-of-header!",
        "pass word",
        "pass%20word",
        f"Basic {basic}",
        "ref-token-value",
        "ref-token",
    ):
        body = json.dumps({"v": leak})
        assert shown("[BODY].v == x", check, body=body) == SECRET, leak
        assert shown("[HEADER].v == x", check, headers={"v": leak}) == SECRET, leak
        assert shown("[RESULT] == x", check, result=leak) == SECRET, leak
    assert shown("[BODY].v == x", check, body='{"v": "plain"}') == '"plain"'
    numeric = make_check("http", "https://a.example", None, {}, [], secrets={"token": "4711"})
    assert shown("[RESULT] == 1", numeric, result=4711) == SECRET
    assert shown("[STATUS] == 200", numeric, status=503) == "503"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(value=json_values, secret=st.text(min_size=1, max_size=20), show_values=st.booleans())
@example(value="\ud800", secret="x", show_values=True)
@example(value=1, secret="1", show_values=True)
def test_no_value_of_a_response_breaks_the_rules(
    value: object, secret: str, *, show_values: bool
) -> None:
    check = check_of(show_values=show_values, secrets={"token": secret})
    facts = ProbeValues(result=value)
    condition = parse('[RESULT] == "this text is not found in a value of the strategy"')
    said = measured_value(condition, facts, check)
    if said is None:
        assert not show_values
        return
    assert said.isprintable()
    assert len(said) <= MEASURED_LONGEST
    assert is_admissible(condition.text, said, show_values=show_values)
    if said not in (NO_VALUE, TOO_LONG, NOT_SCALAR, SECRET):
        assert not isinstance(value, list | dict)
        assert len(str(value)) <= SHOWN_LONGEST + len(str(value)) - len(str(value).strip())
        assert not isinstance(value, str) or secret not in value


@pytest.mark.parametrize(
    ("text", "measured"),
    [
        ("[STATUS] == 200", "secret"),
        ("[STATUS] == 200", '"503"'),
        ("[RESPONSE_TIME] < 800", "1204"),
        ("[CONNECTED] == true", "yes"),
        ("[CERT_EXPIRY] > 14", "13 days"),
        ("[IP] == 10.0.0.1", "host"),
        ("[BODY].a == 1", '"x"'),
        ("[BODY].a == 1", "2"),
        ("[HEADER].a == 1", '"x"'),
        ("[RESULT] == 1", '"x"'),
        ("[RESULT] == 1", "true"),
        ("no condition", "503"),
    ],
)
def test_a_value_that_leadline_would_not_show_is_not_admitted(text: str, measured: str) -> None:
    assert not is_admissible(text, measured, show_values=False)


def test_an_unbounded_or_unprintable_value_is_never_admitted() -> None:
    for measured in ("", "x" * (MEASURED_LONGEST + 1), "a\nb"):
        assert not is_admissible("[BODY] == 1", measured, show_values=True)


def test_the_text_of_a_failed_condition() -> None:
    assert FailedCondition("[STATUS] == 200", "503").text == "[STATUS] == 200 (503)"
    assert FailedCondition("[BODY] == ok").text == "[BODY] == ok"
    assert "hidden" not in repr(FailedCondition("[BODY] == ok", "hidden"))


def test_the_length_of_a_condition_has_one_bound() -> None:
    assert BOUNDS["conditions"].most == CONDITION_LONGEST
