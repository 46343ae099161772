"""The list of the fields of a monitor, the classes that are derived from it, and the documents."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from leadline.http.monitors.schemas.monitors import CreateMonitor, Monitor, UpdateMonitor
from leadline.storage.bundles.rules.bundle import MonitorEntry
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.monitors.rules.fields import (
    BOUNDS,
    DEFAULTS,
    FIELDS,
    FLAGS,
    LISTS,
    NUMBERS,
    OF_INSTALLATION,
    TEXTS,
)
from leadline.storage.monitors.rules.monitor import MonitorDraft
from leadline.storage.monitors.rules.monitor_defaults import BUILT_IN, MonitorDefaults

ROOT = Path(__file__).parents[2]
DERIVED = (CreateMonitor, UpdateMonitor, Monitor, MonitorDraft, MonitorEntry, MonitorRow)


@pytest.mark.parametrize("derived", DERIVED)
def test_each_derived_class_has_every_field(derived: type[msgspec.Struct]) -> None:
    assert FIELDS.keys() <= set(derived.__struct_fields__)


def test_a_field_is_a_number_a_text_a_flag_a_list_or_the_method() -> None:
    kinds = [*NUMBERS, *TEXTS, *FLAGS, *LISTS, "method"]
    assert sorted(kinds) == sorted(FIELDS)
    assert BOUNDS.keys() == {*NUMBERS, *TEXTS, *LISTS}
    assert all(FIELDS[name].entries for name in LISTS)


def test_a_field_with_an_installation_default_can_be_omitted() -> None:
    made = msgspec.json.decode(b'{"name": "x", "type": "http"}', type=CreateMonitor)
    left_out = {name for name in FIELDS if getattr(made, name) is UNSET}
    assert left_out == set(OF_INSTALLATION)
    assert {name: getattr(BUILT_IN, name) for name in OF_INSTALLATION} == {
        name: DEFAULTS[name] for name in OF_INSTALLATION
    }
    assert MonitorDefaults.__struct_fields__ == OF_INSTALLATION


def test_an_update_names_only_what_it_changes() -> None:
    made = msgspec.json.decode(b"{}", type=UpdateMonitor)
    assert all(value is UNSET for value in msgspec.structs.asdict(made).values())


@pytest.mark.parametrize("body", [b"{}", b'{"name": 3}', b'{"name": "x", "retries": "2"}'])
def test_a_new_monitor_has_a_name_and_values_of_the_right_type(body: bytes) -> None:
    given = body.replace(b"}", b', "type": "http"}').replace(b"{, ", b"{")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(given, type=CreateMonitor)


def test_a_stored_monitor_lacks_no_field() -> None:
    with pytest.raises(TypeError):
        MonitorRow()  # type: ignore[call-arg]


def test_two_new_monitors_share_no_list() -> None:
    one, other = MonitorDraft(name="a", type="http"), MonitorDraft(name="b", type="http")
    assert all(getattr(one, name) is not getattr(other, name) for name in LISTS)


def test_the_reference_in_the_documents_is_the_list() -> None:
    """On a failure, copy the lines of the message into docs/reference/checks.md."""
    text = (ROOT / "docs/reference/checks.md").read_text()
    found = re.search(r"(\| field \| meaning .*?\n)\n", text, re.DOTALL)
    assert found is not None
    assert found[1] == _reference()


def _reference() -> str:
    lines = ["| field | meaning | default | bound |", "| --- | --- | --- | --- |"]
    lines += [
        f"| `{name}` | {field.meaning} | {_default(name)} | {_bound(name)} |"
        for name, field in FIELDS.items()
    ]
    return "\n".join(lines) + "\n"


def _default(name: str) -> str:
    value: Any = DEFAULTS.get(name, "required")
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value in ("", []) else str(value)


def _bound(name: str) -> str:
    if name == "method":
        return "GET, POST, HEAD, PUT, DELETE"
    bounds, entries = BOUNDS.get(name), FIELDS[name].entries
    if bounds is None:
        return ""
    text = f"{'0 or ' if bounds.or_zero else ''}{_number(bounds.least)} to {_number(bounds.most)}"
    if name in NUMBERS:
        return text
    return f"at most {entries.most}, each of {text} characters" if entries else f"{text} characters"


def _number(value: int) -> str:
    return f"{value:,}".replace(",", " ")
