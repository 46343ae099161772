"""Scenarios are parsed strictly, and templates are filled so that no value changes its context."""

import json
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.probes.check.check import validate
from leadline.probes.check.monitor_spec import CREDENTIAL_HEADERS, DOCUMENT_DEPTH_MOST
from leadline.probes.kinds.synthetic.scenario import BadScenario, read_scenario
from leadline.probes.kinds.synthetic.template import (
    BadTemplate,
    CannotFill,
    Context,
    Placeholder,
    Values,
    fill,
    read_template,
)

STEP: dict[str, Any] = {"url": "https://api.example.com/"}
SECRET = "tr0ub4dor"


def one(**given: Any) -> dict[str, Any]:
    return {"steps": [{**STEP, **given}]}


def fault(document: object) -> str:
    with pytest.raises(BadScenario) as caught:
        read_scenario(document)
    return str(caught.value)


def test_a_complete_scenario_is_read() -> None:
    scenario = read_scenario(
        {
            "steps": [
                {
                    "name": "sign in",
                    "method": "POST",
                    "url": "https://api.example.com/login",
                    "headers": {"X-Api-Key": "{{secret:key}}"},
                    "body": {"user": "mara", "password": "{{secret:login}}"},
                    "extract": [
                        {"var": "token", "from": "json", "path": "$.data[0].token"},
                        {"var": "next", "from": "header", "path": "X-Next"},
                    ],
                    "assert": [
                        {"kind": "status", "op": "eq", "value": 201},
                        {"kind": "latency_ms", "op": "lt", "value": "800"},
                    ],
                },
                {
                    "url": "https://shop.example.com/orders?after={{next}}",
                    "headers": {"X-Session": "{{token}}"},
                    "assert": [
                        {"kind": "json", "op": "contains", "path": "items", "value": "tea"},
                        {"kind": "body_contains", "op": "ne", "value": "error"},
                    ],
                },
            ]
        }
    )
    assert scenario.bindings == {"key", "login"}
    assert [step.host for step in scenario.steps] == ["api.example.com", "shop.example.com"]
    assert scenario.steps[0].extracts[0].path == ("data", 0, "token")
    assert scenario.steps[0].body_context is Context.JSON


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "missing required field"),
        ({"steps": []}, "1 to 20 steps"),
        ({"steps": [STEP] * 21}, "1 to 20 steps"),
        ({"steps": [STEP], "stpes": []}, "unknown field `stpes`"),
        (one(pathh="x"), "unknown field `pathh`"),
        (one(url=3), "steps[0].url expected `str`"),
        (one(method="TRACE"), "steps[0].method is not a known value"),
        (one(name="x" * 101), "step 1 name"),
        (one(url="ftp://x.example/"), "step 1 url must begin with"),
        (one(url="/relative"), "step 1 url must begin"),
        (one(url="https://{{host}}/"), "step 1 url must begin"),
        (one(url="https://x.example:{{port}}/"), "step 1 url must begin"),
        (one(url="{{scheme}}://x.example/"), "step 1 url must begin"),
        (one(url="https://mara:pw@x.example/"), "step 1 url must not carry a user name"),
        (one(url="https://x.example/#{{frag}}"), "fragment"),
        (one(url="https://x.example/{{late}}"), "uses {{late}}, which no earlier step extracts"),
        (one(url="https://x.example/{{ spaced }}"), "contains {{ that begins neither"),
        (one(headers={"x y": "1"}), "step 1 headers contains a header name"),
        (one(headers={"Content-Length": "1"}), "step 1 headers must not set Content-Length"),
        (one(headers={"A": "1", "a": "2"}), "step 1 headers names a twice"),
        (one(headers={"A": "{{secret:Login}}"}), "step 1 header a contains {{"),
        (one(body="x"), "step 1 body is not sent with GET"),
        (one(method="POST", body="x" * 65_537), "step 1 body is longer"),
        (one(extract=[{"var": "Token", "from": "body"}]), "step 1 extract 1 var"),
        (one(extract=[{"var": "t", "from": "json"}]), "step 1 extract 1 path is required"),
        (one(extract=[{"var": "t", "from": "json", "path": "a b"}]), "step 1 extract 1 path at"),
        (one(extract=[{"var": "t", "from": "header"}]), "the name of a header"),
        (one(extract=[{"var": "t", "from": "status", "path": "x"}]), "path is not used"),
        (one(**{"assert": [{"kind": "status", "op": "contains", "value": 2}]}), "op of status"),
        (one(**{"assert": [{"kind": "status", "op": "eq", "value": "2xx"}]}), "whole number"),
        (one(**{"assert": [{"kind": "status", "op": "eq", "value": True}]}), "whole number"),
        (one(**{"assert": [{"kind": "json", "op": "eq", "value": 1}]}), "path is required"),
        (one(**{"assert": [{"kind": "body_contains", "op": "contains", "value": ""}]}), "a text"),
        (
            one(**{"assert": [{"kind": "json", "op": "eq", "path": "a", "value": "{{secret:x}}"}]}),
            "must not contain a secret",
        ),
    ],
)
def test_an_invalid_scenario_is_refused_with_step_and_part(document: Any, said: str) -> None:
    assert said in fault(document)


@pytest.mark.parametrize("header", sorted(CREDENTIAL_HEADERS))
@pytest.mark.parametrize(
    "value", [SECRET, "Bearer {{secret:key}}", "{{secret:key}}{{secret:key}}", "{{var}}", ""]
)
def test_a_credential_header_must_be_one_secret(header: str, value: str) -> None:
    first = {**STEP, "extract": [{"var": "var", "from": "body"}]}
    said = fault({"steps": [first, {**STEP, "headers": {header.title(): value}}]})
    assert said.startswith(f"step 2 header {header} must be exactly one")
    assert SECRET not in said


def test_a_stored_literal_of_an_older_version_is_still_used() -> None:
    document = one(headers={"Authorization": SECRET})
    assert read_scenario(document, strict=False).steps[0].headers
    assert "step 1 header authorization" in fault(document)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda c: st.lists(c) | st.dictionaries(st.text(), c)
    )
)
def test_any_document_is_read_or_refused(document: object) -> None:
    for steps in (document, [document], [{"url": document}], [{**STEP, "assert": document}]):
        try:
            read_scenario({"steps": steps})
        except BadScenario:
            continue


def test_a_deep_document_is_refused() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadScenario):
        read_scenario({"steps": deep})


# Faults of `validate`, which the API returns.


def faults(**config: Any) -> dict[str, str]:
    found = validate("synthetic", "", None, config, [])
    return {item.field: item.message for item in found}


@pytest.mark.parametrize("depth", [*range(50, 70), *range(880, 1_010, 3), 50_000])
def test_the_depth_limit_of_a_scenario_text(depth: int) -> None:
    body = "[" * depth + "]" * depth
    text = f'{{"steps": [{{"url": "http://a/", "method": "POST", "body": {body}}}]}}'
    # The document, its steps and the step are three levels.
    assert bool(faults(scenario=text)) == (depth + 3 > DOCUMENT_DEPTH_MOST)


def test_bindings_and_secret_references_match() -> None:
    document = one(headers={"Authorization": "{{secret:login}}"})
    key = "config.scenario_secret_login_ref"
    assert list(faults(scenario=document)) == [key]
    assert faults(scenario=document, scenario_secret_login_ref="shop-login") == {}
    assert faults(scenario=json.dumps(document), scenario_secret_login_ref="shop-login") == {}
    surplus = faults(scenario=one(), scenario_secret_login_ref="shop-login")
    assert list(surplus) == [key]


@pytest.mark.parametrize(
    "key",
    [
        "scenario_secret_Login_ref",
        "scenario_secret_ref",
        "scenario_secret_login",
        "scenario_secret_1_ref",
    ],
)
def test_a_malformed_reference_is_refused_by_name(key: str) -> None:
    assert "<binding>_ref" in faults(scenario=one(), **{key: "x"})[f"config.{key}"]


def test_a_scenario_reference_on_another_type_is_refused() -> None:
    found = validate("http", "http://x.test/", None, {"scenario_secret_a_ref": "x"}, [])
    assert [item.field for item in found] == ["config.scenario_secret_a_ref"]


# Templates.

values = st.text(max_size=40)


def filled(template: str, context: Context, value: str, *, secret: bool = False) -> str:
    name = "{{secret:x}}" if secret else "{{x}}"
    both = Values({"x": value}, {"x": value})
    return fill(read_template(template.replace("@", name)), both, context)


@given(values)
def test_a_value_in_a_url_stays_one_segment_or_query_value(value: str) -> None:
    try:
        url = filled("https://x.test/a/@/b?q=@&r=1", Context.URL, value)
    except CannotFill:
        assert value in ("", ".", "..") or any("\ud800" <= c <= "\udfff" for c in value)
        return
    parts = urlsplit(url)
    assert parts.netloc == "x.test"
    assert [unquote(p) for p in parts.path.split("/")] == ["", "a", value, "b"]
    assert parse_qs(parts.query, keep_blank_values=True, strict_parsing=True) == {
        "q": [value],
        "r": ["1"],
    }


@given(values)
def test_a_value_in_a_json_string_stays_that_string(value: str) -> None:
    body = filled('{"a": "<@>", "b": [1, "\\"@"]}', Context.JSON, value)
    assert json.loads(body) == {"a": f"<{value}>", "b": [1, f'"{value}']}


@given(values)
@example("17")
@example("null")
@example("1, 2")
def test_a_value_outside_json_strings_is_one_scalar(value: str) -> None:
    try:
        body = filled('{"a": @}', Context.JSON, value)
    except CannotFill:
        return
    read = json.loads(body)
    assert list(read) == ["a"]
    assert read["a"] is None or isinstance(read["a"], int | float)


@given(values)
def test_a_value_in_a_form_stays_one_value(value: str) -> None:
    try:
        body = filled("a=@&b=1", Context.FORM, value)
    except CannotFill:
        return
    assert parse_qs(body, keep_blank_values=True, strict_parsing=True) == {"a": [value], "b": ["1"]}


@given(values)
def test_a_value_in_a_header_cannot_add_a_line(value: str) -> None:
    if any(c < " " or c == "\x7f" or "\ud800" <= c <= "\udfff" for c in value):
        with pytest.raises(CannotFill) as caught:
            filled("@", Context.HEADER, value, secret=True)
        assert caught.value.is_secret
    else:
        assert filled("<@>", Context.HEADER, value) == f"<{value}>"


@pytest.mark.parametrize("template", ["@", "Bearer @", "@ x"])
@pytest.mark.parametrize("value", [" a", "a ", " ", ""])
def test_a_header_value_has_no_outer_whitespace(template: str, value: str) -> None:
    text = template.replace("@", value)
    if text == text.strip():
        assert filled(template, Context.HEADER, value) == text
    else:
        with pytest.raises(CannotFill) as caught:
            filled(template, Context.HEADER, value, secret=True)
        assert caught.value.is_secret


@pytest.mark.parametrize(
    ("template", "is_secret"), [("{{secret:key}}{{x}}", True), ("{{x}}{{secret:key}}", False)]
)
@pytest.mark.parametrize("value", [" a", "a "])
def test_the_value_with_the_outer_space_is_the_cause(
    template: str, is_secret: bool, value: str
) -> None:
    """A secret is a fault of the monitor, a value of the target one of the target."""
    both = Values({"x": value}, {"key": value})
    with pytest.raises(CannotFill) as caught:
        fill(read_template(template), both, Context.HEADER)
    assert caught.value.is_secret == (is_secret == value.startswith(" "))


@given(st.text(alphabet="{}secrt:x_-aA ", max_size=30))
def test_a_template_is_read_completely_or_refused(text: str) -> None:
    try:
        template = read_template(text)
    except BadTemplate:
        assert "{{" in text
        return
    spelt = [
        part
        if isinstance(part, str)
        else "{{" + ("secret:" if part.is_secret else "") + part.name + "}}"
        for part in template.parts
    ]
    assert "".join(spelt) == text
    assert template.is_one_secret == (
        len(template.parts) == 1
        and isinstance(template.parts[0], Placeholder)
        and template.parts[0].is_secret
    )
