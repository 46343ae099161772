"""The payload of each service follows its reference for every message, and no text in it is
interpreted as markup, a mention or a command.
"""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders import discord, ntfy, opsgenie, pagerduty, slack, teams, telegram
from leadline.probes.senders.channel_spec import MASK, ValueForm
from leadline.probes.senders.deliver import SPECS
from leadline.probes.senders.message import (
    LINE_LONGEST,
    LINES_MOST,
    Message,
    MessageSeverity,
    NotificationStatus,
    body_lines,
    plain_text,
    title_line,
)
from tests.support.peers.fake_services import CANARY, KEY, a_message

# The import of jsonschema takes 3 s of CPU in a test process: one process runs the tests with it.
pytestmark = pytest.mark.xdist_group("jsonschema")

Json = dict[str, Any]


def text(longest: int, shortest: int = 1) -> Json:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def exactly(**properties: Any) -> Json:
    """Returns the schema of an object without other keys; a key that ends in _ is optional."""
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name.rstrip("_"): value for name, value in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
    }


URI = {"type": "string", "pattern": "^https?://"}
SLACK = exactly(
    text=text(40_000),
    unfurl_links={"const": False},
    blocks={
        "type": "array",
        "maxItems": 50,
        "items": exactly(
            type={"const": "rich_text"},
            elements={
                "type": "array",
                "items": exactly(
                    type={"const": "rich_text_section"},
                    elements={
                        "type": "array",
                        "items": {
                            "oneOf": [
                                exactly(
                                    type={"const": "text"},
                                    text=text(3_000),
                                    style_=exactly(bold={"type": "boolean"}),
                                ),
                                exactly(type={"const": "link"}, url=URI),
                            ]
                        },
                    },
                ),
            },
        ),
    },
)
DISCORD = exactly(
    embeds={
        "type": "array",
        "maxItems": 10,
        "items": exactly(
            title=text(256, 0),
            description=text(4_096, 0),
            color={"type": "integer", "minimum": 0, "maximum": 0xFFFFFF},
            url_=URI,
        ),
    },
    allowed_mentions=exactly(parse={"const": []}),
)
RUNS = exactly(
    type={"const": "RichTextBlock"},
    inlines={
        "type": "array",
        "items": exactly(
            type={"const": "TextRun"},
            text=text(2_000, 0),
            weight_={"enum": ["Bolder"]},
            size_={"enum": ["Medium"]},
            color_={"enum": ["Default", "Attention", "Good"]},
        ),
    },
)
TEAMS = exactly(
    type={"const": "message"},
    attachments={
        "type": "array",
        "items": exactly(
            contentType={"const": "application/vnd.microsoft.card.adaptive"},
            contentUrl={"type": "null"},
            content={
                "type": "object",
                "required": ["$schema", "type", "version", "body"],
                "properties": {
                    "type": {"const": "AdaptiveCard"},
                    "version": {"const": "1.4"},
                    "body": {"type": "array", "items": RUNS},
                    "actions": {
                        "type": "array",
                        "items": exactly(type={"const": "Action.OpenUrl"}, title=text(50), url=URI),
                    },
                },
            },
        ),
    },
)
TELEGRAM = exactly(
    chat_id={"oneOf": [{"type": "integer"}, {"type": "string", "pattern": "^@"}]},
    text=text(100_000),
    parse_mode={"const": "HTML"},
    link_preview_options=exactly(is_disabled={"const": True}),
    reply_parameters_=exactly(
        message_id={"type": "integer"}, allow_sending_without_reply={"const": True}
    ),
)
NTFY = exactly(
    topic={"type": "string", "pattern": "^[-_A-Za-z0-9]{1,64}$"},
    title=text(250, 0),
    message=text(4_096, 0),
    tags={"type": "array", "items": text(50)},
    priority={"type": "integer", "minimum": 1, "maximum": 5},
    click_=URI,
)
PAGERDUTY = exactly(
    routing_key={"type": "string", "minLength": 32, "maxLength": 32},
    event_action={"const": "trigger"},
    dedup_key=text(255),
    client=text(100),
    client_url_=URI,
    links_={"type": "array", "items": exactly(href=URI, text=text(100))},
    payload=exactly(
        summary=text(1_024, 0),
        source=text(255),
        severity={"enum": ["critical", "error", "warning", "info"]},
        timestamp_={"type": "string", "format": "date-time"},
        custom_details={"type": "object"},
    ),
)
OPSGENIE = exactly(
    message=text(130, 0),
    alias=text(512),
    description=text(15_000, 0),
    priority={"enum": ["P1", "P2", "P3", "P4", "P5"]},
    source=text(100),
)

messages = st.builds(
    Message,
    id=st.just("id"),
    key=st.just(KEY),
    event=st.just("channel.down"),
    status=st.sampled_from(NotificationStatus),
    severity=st.sampled_from(MessageSeverity),
    title=st.text(max_size=400),
    lines=st.lists(st.text(max_size=700), max_size=30).map(tuple),
    link=st.sampled_from(["", "https://leadline.example.com/x?a=1&b=2"]),
    since=st.none() | st.integers(0, 4_000_000_000_000_000),
    why=st.text(max_size=700),
    thread=st.sampled_from(["", "77", "no number"]),
)


def check(document: Any, schema: Json) -> None:
    import jsonschema

    jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(
        document
    )


@given(messages)
def test_every_message_is_valid_for_each_service(message: Message) -> None:
    check(slack.document(message), SLACK)
    check(discord.document(message), DISCORD)
    check(teams.document(message), TEAMS)
    check(telegram.document(message, "-1001"), TELEGRAM)
    check(telegram.document(message, "@status"), TELEGRAM)
    check(ntfy.document(message, "ops"), NTFY)
    assert len(ntfy.document(message, "ops")["message"].encode()) <= ntfy.MESSAGE_BYTES_MOST
    check(pagerduty.trigger(message, "k" * 32), PAGERDUTY)
    check(opsgenie.opening(message), OPSGENIE)


@given(messages)
def test_readable_lines_have_no_control_characters_and_a_limit(message: Message) -> None:
    lines = [title_line(message), *body_lines(message)]
    assert len(lines) <= LINES_MOST + 3
    for line in lines:
        assert len(line) <= LINE_LONGEST
        assert not re.search(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]", line)
    short = plain_text(message, 300)
    assert len(short) <= 300
    assert short.endswith(message.link)


@given(messages)
def test_a_telegram_text_has_at_most_its_units(message: Message) -> None:
    shown = telegram.document(message, "1")["text"]
    parsed = re.sub(r"</?b>", "", shown)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        parsed = parsed.replace(entity, char)
    units = len(parsed.replace("\u2060", "").encode("utf-16-le")) // 2
    assert units <= telegram.TEXT_LONGEST


HOSTILE = "<!channel> @everyone <b>x</b> [a](http://e) *b* & `c`"


def test_no_text_is_a_mention_or_markup() -> None:
    message = a_message(title=HOSTILE, lines=(HOSTILE,), why="")
    fallback = slack.document(message)["text"]
    assert "<" not in fallback.replace("&lt;", "")
    (block,) = slack.document(message)["blocks"]
    # Rich text is not interpreted: the text stays unchanged.
    assert block["elements"][0]["elements"][0]["text"] == HOSTILE
    embed = discord.document(message)["embeds"][0]
    for shown in (embed["title"], embed["description"]):
        assert not re.search(r"(?<!\\)[*_~`|>#\[\]()<@]", shown)
    assert teams.document(message)["attachments"][0]["content"]["body"][1]["inlines"][0] == {
        "type": "TextRun",
        "text": HOSTILE,
    }
    html = telegram.document(message, "1")["text"]
    assert re.findall(r"<[^>]*>", html) == ["<b>", "</b>"]
    assert "@everyone" not in html


def test_a_recovery_refers_to_its_outage() -> None:
    recovery = a_message(NotificationStatus.RECOVERED, thread="77")
    assert telegram.document(recovery, "1")["reply_parameters"]["message_id"] == 77
    assert (
        pagerduty.resolve(recovery, "k")["dedup_key"]
        == pagerduty.trigger(a_message(), "k")["dedup_key"]
    )


GOOD = {
    "webhook": {"url": "https://hook.example.com/x"},
    "email": {"to": "a@example.com, b@example.com"},
    "slack": {"url": "https://hooks.slack.com/services/T/B/x"},
    "discord": {"url": "https://discord.com/api/webhooks/1/x"},
    "teams": {"url": "https://prod.example.logic.azure.com/workflows/x?sig=y"},
    "telegram": {"bot_token": "123456:" + "A" * 35, "chat_id": "-1001"},
    "ntfy": {"topic": "ops"},
    "pagerduty": {"routing_key": "k" * 32},
    "opsgenie": {"api_key": "a" * 8 + "-" + "b" * 8},
    "apprise": {"url": "pover://user@token"},
}


def test_every_channel_type_has_an_example() -> None:
    assert set(GOOD) == set(SPECS)


def test_an_unknown_key_is_not_repeated_in_the_fault() -> None:
    for key in (CANARY, "A" * 50, "x\ny"):
        (fault,) = SPECS["ntfy"].faults({**GOOD["ntfy"], key: "x"})
        assert (fault.field, CANARY in fault.message) == ("config", False)


@pytest.mark.parametrize("kind", sorted(GOOD))
def test_a_configuration_is_validated_for_its_type(kind: str) -> None:
    spec = SPECS[kind]
    assert spec.faults(GOOD[kind]) == []
    assert [f.field for f in spec.faults({**GOOD[kind], "other": "x"})] == ["config.other"]
    for setting in spec.settings:
        has_lines = setting.form is ValueForm.LINES
        line_end = "\n" * LINES_MOST if has_lines else "\n"
        for bad in (f"{CANARY}{line_end}", f"{CANARY} \x00", "x" * 3_000):
            (fault,) = spec.faults({**GOOD[kind], setting.name: bad})
            assert fault.field == f"config.{setting.name}"
            assert CANARY not in fault.message
        lacking = {k: v for k, v in GOOD[kind].items() if k != setting.name}
        assert bool(spec.faults(lacking)) == setting.required


@pytest.mark.parametrize(
    ("kind", "key", "bad"),
    [
        ("webhook", "url", "ftp://x"),
        ("webhook", "url", f"https://u:{CANARY}@x/"),
        ("webhook", "secret", CANARY),
        ("webhook", "secret", "whsec_dG9vIHNob3J0"),
        ("email", "to", "no address"),
        ("email", "to", "a@b@c, <x>"),
        ("email", "to", ", ".join(f"a{n}@x.test" for n in range(21))),
        ("telegram", "bot_token", "../../x"),
        ("telegram", "chat_id", "some chat"),
        ("ntfy", "topic", "a/b"),
        ("ntfy", "token", "a b"),
        ("pagerduty", "routing_key", "short"),
        ("opsgenie", "api_key", "a\\b/c d"),
        # URLs that the library would follow anywhere: files, sockets, custom hosts.
        ("apprise", "url", "json://127.0.0.1/"),
        ("apprise", "url", "rsyslog://127.0.0.1/"),
        ("apprise", "url", "mailto://u:p@x.test"),
        ("apprise", "url", "pover://"),
    ],
)
def test_an_invalid_value_is_refused_with_its_key(kind: str, key: str, bad: str) -> None:
    faults = SPECS[kind].faults({**GOOD[kind], key: bad})
    assert [f.field for f in faults] == [f"config.{key}"]
    assert CANARY not in faults[0].message


def test_secrets_are_required_again_only_for_another_host() -> None:
    ntfy_spec = SPECS["ntfy"]
    assert not ntfy_spec.has_moved({}, {"url": "https://ntfy.sh/"})
    assert not ntfy_spec.has_moved({"url": "https://a.test/x"}, {"url": "https://a.test/y"})
    assert ntfy_spec.has_moved({}, {"url": "https://ntfy.example.com"})
    assert ntfy_spec.has_moved({"url": "https://a.test"}, {"url": "http://a.test"})


def test_the_mask_is_no_valid_secret() -> None:
    for spec in SPECS.values():
        for setting in spec.settings:
            if setting.secret:
                assert spec.faults({**GOOD[spec.type], setting.name: MASK})
