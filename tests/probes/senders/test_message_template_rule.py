"""A template changes the words of a message, reads nothing else, and never empties the message."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders.channel_spec import TEMPLATES, ChannelSpec, with_templates
from leadline.probes.senders.deliver import SPECS
from leadline.probes.senders.message import (
    LINE_LONGEST,
    LINES_MOST,
    Message,
    MessageSeverity,
    NotificationStatus,
    plain_text,
)
from leadline.probes.senders.message_template import FIELDS, template_fault, templated

MESSAGE = Message(
    id="1",
    key="2",
    event="incident.opened",
    status=NotificationStatus.DOWN,
    title="Checkout is down",
    severity=MessageSeverity.MAJOR,
    lines=("3 of 3 monitors are down.", "Since two minutes."),
    link="https://up.example.com/incidents/1",
    since=1_780_000_000_000_000,
    why="http_status 503",
    conditions=("[STATUS] == 200 (503)", "[BODY].ok == true (false)"),
    runbook_url="https://wiki.example.com/checkout",
    answer="https://up.example.com/answer/secret",
)
EMPTY = replace(MESSAGE, lines=(), why="", conditions=(), since=None, runbook_url="", link="")
VALUES = {
    "title": "Checkout is down",
    "status": "down",
    "severity": "major",
    "event": "incident.opened",
    "details": "3 of 3 monitors are down. Since two minutes.",
    "why": "http_status 503",
    "conditions": "[STATUS] == 200 (503); [BODY].ok == true (false)",
    "since": "2026-05-28T20:26:40Z",
    "runbook_url": "https://wiki.example.com/checkout",
    "link": "https://up.example.com/incidents/1",
}
words = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="{}"), max_size=8)
pieces = st.one_of(words, st.sampled_from([f"{{{name}}}" for name in FIELDS]), st.just(" "))
lines = st.lists(pieces, max_size=6).map("".join)


def test_every_field_has_its_value() -> None:
    assert set(VALUES) == set(FIELDS)
    text = "\n".join(f"{name}={{{name}}}" for name in FIELDS)
    made = templated(MESSAGE, {"text_template": text})
    assert made.lines == tuple(f"{name}={VALUES[name]}" for name in FIELDS)


def test_without_templates_the_message_is_unchanged() -> None:
    assert templated(MESSAGE, {}) is MESSAGE
    assert templated(MESSAGE, {"title_template": "", "text_template": ""}) is MESSAGE


def test_a_title_template_leaves_the_text() -> None:
    made = templated(MESSAGE, {"title_template": "[{severity}] {title}"})
    assert made == replace(MESSAGE, title="[major] Checkout is down")


def test_a_text_template_replaces_all_parts_but_the_link_and_the_answer() -> None:
    made = templated(MESSAGE, {"text_template": "Look at it.\nWhy: {why}"})
    assert plain_text(made, 2_000) == (
        "Checkout is down\nLook at it.\nWhy: http_status 503\n"
        "Acknowledge, resolve or add a note: https://up.example.com/answer/secret\n"
        "https://up.example.com/incidents/1"
    )


def test_a_line_of_empty_fields_is_left_out_and_a_title_of_them_is_kept() -> None:
    given_ = {"title_template": "{why}{runbook_url}", "text_template": "Runbook: {runbook_url}\nx"}
    made = templated(EMPTY, given_)
    assert (made.title, made.lines) == (EMPTY.title, ("x",))


def test_a_value_is_no_template() -> None:
    hostile = replace(MESSAGE, title="{why} {link}", why="{title}")
    made = templated(hostile, {"title_template": "{title}", "text_template": "{why}"})
    assert (made.title, made.lines) == ("{why} {link}", ("{title}",))


@given(st.lists(lines, max_size=LINES_MOST).map("\n".join), st.sampled_from([MESSAGE, EMPTY]))
def test_each_line_is_filled_like_its_parts(template: str, message: Message) -> None:
    if not template:
        return
    values = VALUES if message is MESSAGE else {**dict.fromkeys(VALUES, ""), **_kept()}
    expected = []
    for line in template.split("\n"):
        names = re.findall(r"\{(\w+)\}", line)
        if names and not any(values[name] for name in names):
            continue
        words = line
        for name in FIELDS:
            words = words.replace(f"{{{name}}}", values[name])
        words = " ".join(words.split())
        expected.append(words if len(words) <= LINE_LONGEST else words[: LINE_LONGEST - 1] + "…")
    assert template_fault(template, LINES_MOST) is None
    assert templated(message, {"text_template": template}).lines == tuple(expected)


def _kept() -> dict[str, str]:
    return {name: VALUES[name] for name in ("title", "status", "severity", "event")}


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("{answer}", "no other fields"),
        ("{title.__class__}", ""),
        ("{config}", "no other fields"),
        ("{0}", ""),
        ("a\nb", "one line"),
        ("x" * 2_001, "2000"),
        ("{Title}", "no other fields"),
        ('{"text": "{title}"}', ""),
    ],
)
def test_faults_of_a_title_template(template: str, fault: str) -> None:
    found = template_fault(template, 1)
    assert found is None if not fault else found is not None and fault in found


def test_every_type_but_the_webhook_has_templates() -> None:
    for kind, spec in SPECS.items():
        assert (TEMPLATES[0] in spec.settings) == (kind != "webhook")


def test_an_unknown_field_is_refused_with_the_setting_and_without_its_value() -> None:
    spec = with_templates(ChannelSpec(type="x", help="", settings=()))
    (fault,) = spec.faults({"title_template": "{bot_token}"})
    assert fault.field == "config.title_template"
    assert "bot_token" not in fault.message
    assert "{title}, {status}" in fault.message
