"""Notices contain the public updates of the page; subscriber addresses and URLs are validated."""

from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.status_pages.rules.status_page import (
    Audience,
    Named,
    PageFacts,
    PageFrame,
    render,
    shown_incidents,
)
from leadline.storage.status_pages.rules.subscription import (
    COMPONENTS_CHOSEN_MOST,
    SubscriberKind,
    SubscriberNotice,
    SubscriptionRequest,
    address_hash,
    asked_faults,
    concerned,
    is_mail_address,
    is_public_url,
    notice_of,
    shown_address,
    wants,
)
from tests.support.worlds.page_world import SECRET, facts


def frame_of(found: PageFacts) -> PageFrame:
    return PageFrame(found.project, [Named(one.anchor, one.name) for one in found.components])


@given(facts())
def test_each_public_update_has_a_notice_and_no_other_has(found: PageFacts) -> None:
    frame = frame_of(found)
    shown = {one.uid: one for one in shown_incidents(found, found.incidents, Audience.PUBLIC)}
    for incident in found.incidents:
        public = shown.get(incident.uid)
        said = {} if public is None else {one.seq: one for one in public.updates}
        for seq in range(incident.seq + 2):
            notice = notice_of(frame, incident, seq)
            assert (notice is not None) == (seq in said)
            if notice is None or public is None:
                continue
            assert (notice.title, notice.impact) == (public.title, public.impact)
            assert (notice.status, notice.body) == (said[seq].status, said[seq].body)
            assert not any(SECRET in str(text) for text in leaves(notice))


@given(facts())
def test_every_incident_of_the_page_has_a_notice(found: PageFacts) -> None:
    frame, page = frame_of(found), render(found, Audience.PUBLIC)
    leaves = {
        one.uid
        for one in found.incidents
        if any(notice_of(frame, one, update.seq) for update in one.updates)
    }
    assert {one.uid for one in page.active} <= leaves
    assert {one.uid for one in page.recent} <= leaves


@given(facts(), st.data())
def test_chosen_components_select_their_incidents_and_general_ones(
    found: PageFacts, data: st.DataObject
) -> None:
    frame, uids = frame_of(found), [one.uid for one in found.components]
    some = st.none() if not uids else st.none() | st.sets(st.sampled_from(uids), min_size=1)
    chosen = data.draw(some)
    for incident in found.incidents:
        about = concerned(frame, uids, incident)
        anchors = {incident.monitor, incident.service} - {None}
        named = {one.uid for one in found.components if one.anchor in anchors}
        expected = chosen is None or bool(chosen & (named if anchors else set(uids)))
        assert wants(chosen, about) == expected


@given(facts())
def test_a_notice_survives_a_json_round_trip(found: PageFacts) -> None:
    for incident in found.incidents:
        notice = notice_of(frame_of(found), incident, 1)
        if notice is not None and not any(has_surrogate(str(leaf)) for leaf in leaves(notice)):
            assert msgspec.json.decode(msgspec.json.encode(notice), type=SubscriberNotice) == notice


def has_surrogate(text: str) -> bool:
    """Returns whether the text has a lone surrogate, which PostgreSQL cannot store."""
    return any("\ud800" <= character <= "\udfff" for character in text)


def leaves(notice: SubscriberNotice) -> list[object]:
    return [notice.title, notice.body, *notice.components]


@pytest.mark.parametrize(
    "text",
    ["ada@example.com", "a.b+c@sub.example.co", "o'hara@example.com", f"{'a' * 64}@example.com"],
)
def test_valid_mail_addresses(text: str) -> None:
    assert is_mail_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "ada", "ada@", "@example.com", "ada@example", "a b@example.com", "ada@exa mple.com"),
        *("ada@example.com\r\nBcc: b@example.com", "ada@example..com", "ada@-example.com"),
        *("ada@example.com, b@example.com", "<ada@example.com>", '"ada"@example.com'),
        *(".ada@example.com", "ada.@example.com", "a..b@example.com", "ada@[127.0.0.1]"),
        *("ädä@example.com", f"{'a' * 65}@example.com", f"ada@{'a' * 64}.com", "a@\x00b.com"),
        "ada@" + "a." * 130 + "com",
    ],
)
def test_invalid_mail_addresses(text: str) -> None:
    assert not is_mail_address(text)


@pytest.mark.parametrize("text", ["https://example.com/hook", "https://example.com:8443/?a=b"])
def test_valid_webhook_urls(text: str) -> None:
    assert is_public_url(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "http://example.com/", "https://", "https:///hook", "https://u:p@example.com/"),
        *("https://example.com/a b", "https://example.com/\r\nX: y", "ftp://example.com/"),
        *("https://exämple.com/", "https://example.com:0/", "https://example.com:99999/"),
        *("https://[::1/", "https://example.com/" + "a" * 2_000),
    ],
)
def test_invalid_webhook_urls(text: str) -> None:
    assert not is_public_url(text)


def test_each_fault_names_its_field() -> None:
    many = frozenset(UUID(int=n) for n in range(COMPONENTS_CHOSEN_MOST + 1))
    cases = [
        (SubscriptionRequest(kind=SubscriberKind.MAIL, address="x"), ["email"]),
        (SubscriptionRequest(kind=SubscriberKind.WEBHOOK, address="http://x/"), ["url"]),
        (SubscriptionRequest(kind=SubscriberKind.SLACK, address="http://x/"), ["url"]),
        (
            SubscriptionRequest(kind=SubscriberKind.MAIL, address="a@b.co", components=frozenset()),
            ["components"],
        ),
        (
            SubscriptionRequest(kind=SubscriberKind.MAIL, address="a@b.co", components=many),
            ["components"],
        ),
        (
            SubscriptionRequest(kind=SubscriberKind.MAIL, address="x", components=frozenset()),
            ["email", "components"],
        ),
        (SubscriptionRequest(kind=SubscriberKind.MAIL, address="a@b.co"), []),
    ]
    for asked, fields in cases:
        assert [field for field, _ in asked_faults(asked)] == fields


def test_the_hash_of_an_address_ignores_its_case() -> None:
    assert address_hash(SubscriberKind.MAIL, "Ada@Example.com") == address_hash(
        SubscriberKind.MAIL, "ada@example.COM"
    )
    assert address_hash(SubscriberKind.MAIL, "a@b.co") != address_hash(
        SubscriberKind.WEBHOOK, "a@b.co"
    )
    assert address_hash(SubscriberKind.WEBHOOK, "https://x/A") != address_hash(
        SubscriberKind.WEBHOOK, "https://x/a"
    )


def test_the_url_of_a_chat_is_shown_by_its_host_and_its_end() -> None:
    url = "https://hooks.slack.com/services/T0/B0/secret1234"
    assert shown_address("slack", url) == "hooks.slack.com/…1234"
    assert shown_address("webhook", url) == url
    assert shown_address("mail", "ada@example.com") == "ada@example.com"
