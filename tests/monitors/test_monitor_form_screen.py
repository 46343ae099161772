"""The form of a monitor works with any `Spec`: it reads what it shows, and shows each error at its
field."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.http.monitors.form.form_fields import FormField, sections
from leadline.http.monitors.form.form_parser import fresh, kinds, of_row, read, stored_secrets
from leadline.http.monitors.form.form_pickers import pickable_fields
from leadline.http.ui.pickers.fields import PickerChoice, PickerField, PickerOption
from leadline.http.ui.pickers.objects import tags_in
from leadline.probes.check.monitor_spec import Field, FieldType, MonitorType, Spec, TargetForm
from leadline.probes.check.registry import FILES, spec_of
from leadline.storage.core.instant import Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.fields import DEFAULTS
from leadline.storage.services.queries.pickable_objects import PickableKind
from tests.support.peers.job_queue import polled

# A kind as a later one may be, with a field of every type.
LATER = Spec(
    type=MonitorType.DNS,
    help="Looks a name up.",
    target=TargetForm.NAME,
    fields=(
        Field(name="words", type=FieldType.TEXT, help="Words.", required=True, longest=50),
        Field(name="text", type=FieldType.TEXT, help="A text.", multiline=True),
        Field(name="key", type=FieldType.TEXT, help="A secret.", secret=True),
        Field(name="port", type=FieldType.INTEGER, help="A port.", default=53, least=1, most=99),
        Field(name="strict", type=FieldType.BOOLEAN, help="Strict.", default=True),
        Field(name="loose", type=FieldType.BOOLEAN, help="Loose.", default=False),
        Field(
            name="transport",
            type=FieldType.CHOICE,
            help="How.",
            default="udp",
            choices=("udp", "tcp"),
        ),
        Field(name="headers", type=FieldType.HEADERS, help="Headers."),
        Field(name="key_ref", type=FieldType.SECRET_NAME, help="A name."),
    ),
    placeholders=frozenset({"RESULT"}),
)
EVERY = [*kinds(), LATER]
# The least that may be saved as one, without a secret.
WORKFLOW = json.dumps({**polled(submit={"headers": []}, completion={"headers": []}), "secrets": {}})
TYPED = {
    FieldType.TEXT: "up",
    FieldType.DOCUMENT: '{"steps": [{"url": "https://example.com/"}]}',
    FieldType.IDS: "01a20031-f412-7194-981b-2db4350507bf",
}
OTHER = UUID("01a20031-f412-7194-981b-2db4350507bf")
GOOD = {
    "url": "https://example.com/",
    "host_port": "example.com:5432",
    "host": "example.com",
    "name": "example.com",
    "none": "",
}
ROW = MonitorRow(
    **{**DEFAULTS, "name": "X", "target": "example.com"},
    org=1,
    id=1,
    uid=OTHER,
    project_uid=OTHER,
    project=1,
    shard=1,
    slug="x",
    type="dns",
    depends_on=[],
    config="{}",
    config_ciphertext=None,
    push_token_hash=None,
    push_token_ciphertext=None,
    revision=1,
    created_at=Instant(0),
    updated_at=Instant(0),
)


def pickers_of(spec: Spec, typed: dict[str, list[str]]) -> dict[str, PickerField]:
    """The type-ahead fields of a project with one other monitor and no channels."""
    found = {}
    for name, kind in pickable_fields(spec).items():
        names = {str(OTHER): "Other"} if kind is PickableKind.MONITOR else {}
        texts = typed.get(name, [])
        keys = tags_in(texts) if kind is None else [key for key in texts if key in names]
        found[name] = PickerField(
            name=name,
            path="/pick",
            chosen=[PickerChoice(key, names.get(key, key)) for key in keys],
            options=[PickerOption(text, "", key, text) for key, text in names.items()],
        )
    return found


def shown(spec: Spec, typed: dict[str, list[str]], **errors: str) -> dict[str, FormField]:
    pickers = pickers_of(spec, typed)
    found = sections(
        spec, typed, errors, regions=["core", "eu"], pickers=pickers, stored=frozenset()
    )
    return {row.name: row for section in found for row in section.rows}


def sent(rows: dict[str, FormField]) -> dict[str, list[str]]:
    """The form data that a browser sends for the rows."""
    found: dict[str, list[str]] = {}
    for name, row in rows.items():
        match row.control:
            case "check":
                found |= {name: ["true"]} if row.checked else {}
            case "picker":
                assert row.picker is not None
                found[name] = [one.key for one in row.picker.chosen]
            case "select":
                found[name] = [value for value, _, chosen in row.choices if chosen]
            case "lines":
                found[name] = [row.value.replace("\n", "\r\n")]
            case _:
                found[name] = [row.value]
    return {name: values for name, values in found.items() if values}


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: str(spec.type))
def test_every_field_of_a_kind_has_its_row_with_a_label_and_a_hint(spec: Spec) -> None:
    rows = shown(spec, fresh(spec))
    for item in spec.fields:
        row = rows[f"config.{item.name}"]
        assert row.label
        assert item.help.rstrip(".") in row.hint
        if item.type is FieldType.INTEGER:
            assert f"{item.least} to {item.most}" in row.hint
    assert ("target" in rows) == (spec.target is not TargetForm.NONE)
    assert ("conditions" in rows) == bool(spec.placeholders)
    assert rows["interval_seconds"].unit == "s"
    bounds = (
        "3,600 to 86,400, default 21600" if spec.type == "domain" else "5 to 86,400, default 60"
    )
    assert bounds in rows["interval_seconds"].hint


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: str(spec.type))
def test_a_form_with_its_defaults_requires_only_the_required_fields(spec: Spec) -> None:
    found = read(spec, sent(shown(spec, fresh(spec))))
    required = {f"config.{item.name}" for item in spec.fields if item.required}
    missing = {"name", *required} | ({"target"} if spec.target is not TargetForm.NONE else set())
    if spec in kinds():
        assert set(found.errors) == missing
    assert found.values["config"] == {}


CONFIGS = st.fixed_dictionaries(
    {"words": st.text("abc def", min_size=1, max_size=20).map(str.strip).filter(bool)},
    optional={
        "text": st.text("abc\n", min_size=1, max_size=20).map(str.strip).filter(bool),
        "port": st.integers(1, 99).filter(lambda port: port != 53).map(str),
        "strict": st.just(False),
        "loose": st.just(True),
        "transport": st.just("tcp"),
        "headers": st.dictionaries(
            st.from_regex(r"[a-z]{1,8}", fullmatch=True),
            st.from_regex(r"[a-z]{1,8}", fullmatch=True),
            min_size=1,
            max_size=3,
        ),
        "key_ref": st.just("a-name"),
    },
)


@given(CONFIGS, st.lists(st.sampled_from(["[RESULT] == 1", "[RESULT] != 2"]), unique=True))
def test_a_stored_config_passes_through_its_form_unchanged(
    config: dict[str, Any], conditions: list[str]
) -> None:
    row = msgspec.structs.replace(
        ROW,
        config=msgspec.json.encode(config).decode(),
        conditions=conditions,
        tags=["a", "b"],
        interval_seconds=3_600,
        region="eu",
    )
    found = read(LATER, sent(shown(LATER, of_row(row, LATER, [OTHER], config))))
    assert found.values["config"] == config
    assert found.values["conditions"] == conditions
    assert found.values["tags"] == ["a", "b"]
    assert found.values["depends_on"] == [OTHER]
    assert (found.values["interval_seconds"], found.values["region"]) == (3_600, "eu")
    assert found.values["name"] == "X"


def test_a_blank_secret_is_kept_and_its_value_is_not_in_the_form() -> None:
    row = msgspec.structs.replace(ROW, config='{"words":"w","key":""}')
    stored = stored_secrets(row, LATER)
    assert stored == {"key"}
    rows = shown(LATER, of_row(row, LATER, [], msgspec.json.decode(row.config)))
    assert rows["config.key"].control == "password"
    assert rows["config.key"].value == ""
    assert read(LATER, sent(rows), stored).values["config"]["key"] == ""
    assert "key" not in read(LATER, sent(rows)).values["config"]
    referring = {**sent(rows), "config.key_ref": ["a-name"]}
    assert "key" not in read(LATER, referring, stored).values["config"]


@pytest.mark.parametrize(
    ("field", "text"),
    [
        ("interval_seconds", "86401"),
        ("interval_seconds", ""),
        ("interval_seconds", "1e9"),
        ("interval_seconds", "99999999999999999999"),
        ("timeout_seconds", "61"),
        ("failure_threshold", "0"),
        ("retries", "-1"),
        ("name", " "),
        ("name", "x" * 201),
        ("target", "https://u:p@example.com/"),
        ("target", "javascript:alert(1)"),
        ("conditions", "[STATUS] is good"),
        ("tags", ",".join(f"t{n}" for n in range(33))),
        ("description", "x" * 201),
        ("depends_on", "not-an-id"),
        ("config.headers", "no colon here"),
        ("config.headers", "A: 1\nA: 2"),
        ("config.headers", "host : x\x01"),
        ("config.auth_mode", "magic"),
    ],
)
def test_every_error_is_shown_at_its_field_with_the_typed_value(field: str, text: str) -> None:
    spec = spec_of("http")
    assert spec is not None
    typed = {**sent(shown(spec, fresh(spec))), "name": ["Shop"], "target": ["http://x.test/"]}
    assert read(spec, typed).errors == {}
    typed[field] = [text]
    found = read(spec, typed)
    assert set(found.errors) == {field}
    rows = shown(spec, typed, **found.errors)
    assert rows[field].error
    if rows[field].control in ("input", "number", "lines"):
        assert rows[field].value == text


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "name",
                "target",
                "tags",
                "interval_seconds",
                "config.headers",
                "config.body",
                "conditions",
                "depends_on",
                "config.auth_mode",
                "retries",
            ]
        ),
        st.lists(st.text(max_size=40), min_size=1, max_size=2),
    )
)
def test_any_form_data_is_read_without_an_exception(typed: dict[str, list[str]]) -> None:
    for kind in FILES:
        spec = spec_of(kind)
        assert spec is not None
        found = read(spec, typed)
        shown(spec, typed, **found.errors)


@pytest.mark.parametrize("spec", kinds(), ids=lambda spec: str(spec.type))
def test_a_filled_form_of_every_kind_may_be_saved(spec: Spec) -> None:
    typed = filled(spec)
    assert read(spec, typed).errors == {}


def _needs_a_password(spec: Spec) -> bool:
    """Returns whether the user name of this type has to be given, or may be with a password."""
    return any(item.name == "username" and item.required for item in spec.fields)


def filled(spec: Spec) -> dict[str, list[str]]:
    """A form in which no more is typed than has to be."""
    typed = {**sent(shown(spec, fresh(spec))), "name": ["X"]}
    if spec.target is not TargetForm.NONE:
        scheme = spec.schemes[0] if spec.schemes else ""
        typed["target"] = [GOOD[spec.target].replace("https", scheme)]
    for item in spec.fields:
        if item.required:
            typed[f"config.{item.name}"] = [
                WORKFLOW if item.name == "workflow" else TYPED[item.type]
            ]
        elif item.name == "password" and _needs_a_password(spec):
            typed["config.password"] = ["hunter2"]
    return typed


def test_a_scenario_asks_for_the_secret_of_each_binding_that_it_declares() -> None:
    spec = spec_of("synthetic")
    assert spec is not None
    typed = filled(spec)
    typed["config.scenario"] = [
        '{"steps": [{"url": "https://x.test/", "headers": {"Cookie": "{{secret:a}}"}}]}'
    ]
    found = read(spec, typed)
    key = "config.scenario_secret_a_ref"
    assert set(found.errors) == {key}
    rows = {
        row.name: row
        for section in sections(
            spec,
            typed,
            found.errors,
            regions=[],
            pickers=pickers_of(spec, typed),
            stored=frozenset(),
            secrets=["db"],
        )
        for row in section.rows
    }
    assert rows[key].error
    assert [value for value, _, _ in rows[key].choices] == ["", "db"]
    typed[key] = ["db"]
    found = read(spec, typed)
    assert found.errors == {}
    assert found.values["config"]["scenario_secret_a_ref"] == "db"


def test_a_scenario_that_no_longer_declares_a_binding_lets_its_secret_go() -> None:
    spec = spec_of("synthetic")
    assert spec is not None
    typed = {**filled(spec), "config.scenario_secret_a_ref": ["db"]}
    found = read(spec, typed)
    assert found.errors == {}
    assert "scenario_secret_a_ref" not in found.values["config"]


def test_the_children_of_a_composite_stay_selected() -> None:
    spec = spec_of("composite")
    assert spec is not None
    for stored in ([str(OTHER)], str(OTHER).upper()):
        rows = shown(spec, of_row(ROW, spec, [], {"children": stored}))
        picker = rows["config.children"].picker
        assert picker is not None
        assert picker.chosen == [PickerChoice(str(OTHER), "Other")]
        typed = {**sent(rows), "name": ["X"]}
        assert read(spec, typed).values["config"]["children"] == [str(OTHER)]


def test_a_kind_may_be_unlike_all_others_and_needs_no_form_of_its_own() -> None:
    odd = replace(LATER, methods=("GET",), placeholders=frozenset(), fields=())
    assert {"method", "target", "name"} <= set(shown(odd, fresh(odd)))


def test_a_box_that_was_left_open_stays_open_when_the_kind_changes() -> None:
    spec = spec_of("tcp")
    assert spec is not None
    typed = {"fields": ["http"], "name": ["Till"]}
    assert shown(spec, fresh(spec, typed))["auto_incident"].checked is False
    assert shown(spec, fresh(spec))["auto_incident"].checked is True


@pytest.mark.parametrize("kind", ["async_canary", "domain"])
def test_a_field_with_one_value_states_it(kind: str) -> None:
    spec = spec_of(kind)
    assert spec is not None
    assert shown(spec, fresh(spec))["retries"].hint.startswith("Must be 0")
