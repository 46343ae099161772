"""RSS, Atom and JSON feeds are valid and have the same entries as the status page."""

import json
import re
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import feedparser
import pytest
from hypothesis import given, settings
from lxml import etree

from leadline.http.status_pages.public.feeds import feed_text
from leadline.http.status_pages.public.urls import Addresses
from leadline.storage.core.instant import HOUR, Instant, from_datetime, from_text, to_datetime
from leadline.storage.incidents.rules.incident import IncidentSource
from leadline.storage.status_pages.rules.status_page import (
    Audience,
    Incident,
    Page,
    PageFacts,
    render,
)
from tests.status_pages.test_status_page_rule import outage, shop
from tests.support.run.kinds import TESTS
from tests.support.worlds import page_world
from tests.support.worlds.page_world import HOSTILE, SECRET

PAGE_URL = "https://status.example/status/shop?token=leadline_page_x"
PLACES = Addresses("https://status.example", "shop", "leadline_page_x")
FORMS = ("rss", "atom", "json")
GRAMMARS = TESTS / "support" / "app"
SCHEMAS = {form: etree.RelaxNG(etree.parse(GRAMMARS / f"{form}.rng")) for form in ("rss", "atom")}
ATOM = "{http://www.w3.org/2005/Atom}"
STATUS = {
    "investigating": "Investigating",
    "identified": "Identified",
    "monitoring": "Monitoring",
    "resolved": "Resolved",
}
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
pages = page_world.facts().map(lambda facts: render(facts, Audience.PUBLIC))


@dataclass(frozen=True)
class FeedEntry:
    """An entry as a reader of the feed finds it."""

    id: str
    link: str
    title: str
    status: str
    published: Instant
    updated: Instant
    content: str


def texts(page: Page) -> dict[str, str]:
    return {form: feed_text(form, page, PLACES) for form in FORMS}


def text_of(element: ElementTree.Element, tag: str) -> str:
    found = element.findall(tag)
    assert len(found) == 1, f"exactly one {tag}"
    return found[0].text or ""


def of_rss(text: str) -> tuple[str, list[FeedEntry]]:
    root = ElementTree.fromstring(text.encode())
    assert (root.tag, root.get("version")) == ("rss", "2.0")
    channel = root[0]
    assert [channel.tag, text_of(channel, "link")] == ["channel", PAGE_URL]
    assert text_of(channel, "description")
    parsedate_to_datetime(text_of(channel, "lastBuildDate"))
    its_own = {"rel": "self", "type": "application/rss+xml", "href": PLACES.feed("rss")}
    assert [link.attrib for link in channel.findall(f"{ATOM}link")] == [its_own]
    entries = []
    for item in channel.findall("item"):
        guid = item.find("guid")
        assert guid is not None
        assert guid.get("isPermaLink") == "false"
        entries.append(
            FeedEntry(
                id=text_of(item, "guid"),
                link=text_of(item, "link"),
                title=text_of(item, "title"),
                status=text_of(item, "category"),
                published=from_datetime(parsedate_to_datetime(text_of(item, "pubDate"))),
                updated=from_text(text_of(item, f"{ATOM}updated")),
                content=text_of(item, "description"),
            )
        )
    return text_of(channel, "title"), entries


def of_atom(text: str) -> tuple[str, list[FeedEntry]]:
    root = ElementTree.fromstring(text.encode())
    assert root.tag == f"{ATOM}feed"
    # RFC 4287 4.1.1: one id, title and updated, an author for all; at most one link to itself.
    assert text_of(root, f"{ATOM}id") == "https://status.example/status/shop"
    from_text(text_of(root, f"{ATOM}updated"))
    author = root.find(f"{ATOM}author")
    assert author is not None
    assert text_of(author, f"{ATOM}name") == text_of(root, f"{ATOM}title")
    links = {link.get("rel"): link.get("href") for link in root.findall(f"{ATOM}link")}
    assert links == {"alternate": PAGE_URL, "self": PLACES.feed("atom")}
    entries = []
    for entry in root.findall(f"{ATOM}entry"):
        content = entry.find(f"{ATOM}content")
        category = entry.find(f"{ATOM}category")
        link = entry.find(f"{ATOM}link")
        assert content is not None
        assert category is not None
        assert link is not None
        assert content.get("type") == "html"
        entries.append(
            FeedEntry(
                id=text_of(entry, f"{ATOM}id"),
                link=link.get("href", ""),
                title=text_of(entry, f"{ATOM}title"),
                status=category.get("term", ""),
                published=from_text(text_of(entry, f"{ATOM}published")),
                updated=from_text(text_of(entry, f"{ATOM}updated")),
                content=content.text or "",
            )
        )
    return text_of(root, f"{ATOM}title"), entries


def of_json(text: str) -> tuple[str, list[FeedEntry]]:
    document = json.loads(text)
    assert json_feed_faults(document) == []
    assert document["home_page_url"] == PAGE_URL
    assert document["feed_url"] == PLACES.feed("json")
    return document["title"], [
        FeedEntry(
            id=item["id"],
            link=item["url"],
            title=item["title"],
            status=item["tags"][0],
            published=from_text(item["date_published"]),
            updated=from_text(item["date_modified"]),
            content=item["content_html"],
        )
        for item in document["items"]
    ]


def json_feed_faults(document: Any) -> list[str]:
    """Returns the violations of https://jsonfeed.org/version/1.1 in the fields that Leadline
    writes.
    """
    if not isinstance(document, dict):
        return ["a feed is an object"]
    faults = []
    if document.get("version") != "https://jsonfeed.org/version/1.1":
        faults.append("version")
    items = document.get("items")
    if not isinstance(document.get("title"), str) or not isinstance(items, list):
        return [*faults, "title and items are needed"]
    if any(not document[name].startswith("https://") for name in ("home_page_url", "feed_url")):
        faults.append("addresses are absolute")
    known = {"version", "title", "description", "home_page_url", "feed_url", "items"}
    faults += [f"unknown: {name}" for name in document.keys() - known]
    for item in items:
        if not isinstance(item.get("id"), str) or not item["id"]:
            faults.append("an item has an id that is a text")
        if not (item.keys() & {"content_html", "content_text"}):
            faults.append("an item has a content")
        faults += [f"{name} is RFC 3339" for name in DATES if not is_instant(item.get(name))]
        if not all(isinstance(tag, str) for tag in item.get("tags", [])):
            faults.append("tags are texts")
    if len({item["id"] for item in items}) != len(items):
        faults.append("an id is one item's alone")
    return faults


DATES = ("date_published", "date_modified")


def is_instant(text: object) -> bool:
    try:
        return isinstance(text, str) and datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


class Content(HTMLParser):
    """The paragraphs and tags of an entry as a browser parses them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.paragraphs: list[str] = []
        self.instants: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag == "p":
            self.paragraphs.append("")
        if tag == "time":
            self.instants += [value or "" for name, value in attrs if name == "datetime"]

    def handle_data(self, data: str) -> None:
        if self.paragraphs:
            self.paragraphs[-1] += data


def clean(text: str) -> str:
    """Returns the text with the characters that XML 1.0 does not allow replaced."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(char if is_legal(ord(char)) else "\ufffd" for char in lines)


def is_legal(code: int) -> bool:
    if code < 0x20:
        return code in (0x9, 0xA)
    return not 0xD800 <= code <= 0xDFFF and code not in (0xFFFE, 0xFFFF)


def squeezed(text: str) -> str:
    return " ".join(text.split())


def shown(page: Page) -> list[Incident]:
    return [*page.active, *page.recent]


def to_the_second(at: Instant) -> Instant:
    return from_datetime(to_datetime(at).replace(microsecond=0))


@given(pages)
@settings(deadline=None)
def test_all_feeds_have_the_entries_of_the_page(page: Page) -> None:
    written = texts(page)
    atom = of_atom(written["atom"])
    assert of_json(written["json"]) == atom
    title, entries = of_rss(written["rss"])
    to_seconds = [replace(one, published=to_the_second(one.published)) for one in atom[1]]
    assert (title, entries) == (atom[0], to_seconds)
    assert title == clean(page.title)
    assert [(one.id, one.title, one.status, one.published, one.updated) for one in atom[1]] == [
        (
            f"urn:uuid:{incident.uid}",
            clean(incident.title),
            STATUS[incident.status],
            incident.started_at,
            changed_at(incident),
        )
        for incident in shown(page)
    ]
    assert all(one.link == PLACES.incident(UUID(one.id)) for one in atom[1])


@given(pages)
@settings(deadline=None)
def test_an_entry_has_all_public_updates_newest_first_without_markup(
    page: Page,
) -> None:
    _, entries = of_json(texts(page)["json"])
    for entry, incident in zip(entries, shown(page), strict=True):
        found = Content(entry.content)
        assert found.tags <= {"p", "strong", "time", "br"}
        parts = [
            ("Update" if each.status is None else STATUS[each.status], each.created_at, each.body)
            for each in reversed(incident.updates)
        ]
        if incident.postmortem is not None:
            written = incident.postmortem
            parts.insert(0, ("Postmortem", written.published_at, written.body))
        expected = []
        for word, instant, body in parts:
            at = to_datetime(instant)
            when = f"{at.day} {at:%B %Y, %H:%M:%S} UTC"
            expected += [f"{word}, {when}", *filter(None, [squeezed(clean(body))])]
        first, *rest = map(squeezed, found.paragraphs)
        assert first.startswith("Resolved after" if incident.resolved_at else entry.status)
        assert rest == expected
        assert [from_text(at) for at in found.instants] == [instant for _, instant, _ in parts]


def changed_at(incident: Incident) -> Instant:
    """Returns the last change of the incident or of its published postmortem."""
    if incident.postmortem is None:
        return incident.updated_at
    return max(incident.updated_at, incident.postmortem.updated_at)


@given(page_world.facts())
@settings(deadline=None)
def test_feeds_do_not_contain_private_text_or_ids(facts: PageFacts) -> None:
    page = render(facts, Audience.PUBLIC)
    for text in texts(page).values():
        assert SECRET not in text
        assert json.dumps(SECRET)[1:-1] not in text
        assert {UUID(found) for found in UUIDS.findall(text)} == {one.uid for one in shown(page)}


@given(pages)
@settings(deadline=None, max_examples=50)
def test_feedparser_reads_rss_and_atom(page: Page) -> None:
    for form, version in (("rss", "rss20"), ("atom", "atom10")):
        found = feedparser.parse(texts(page)[form].encode())
        assert not found.bozo, found.get("bozo_exception")
        assert found.version == version
        assert found.feed.link == PAGE_URL
        assert [entry.id for entry in found.entries] == [one.uid.urn for one in shown(page)]
        for entry, incident in zip(found.entries, shown(page), strict=True):
            updated = to_datetime(changed_at(incident))
            assert tuple(entry.updated_parsed)[:6] == updated.timetuple()[:6]
            assert [tag.term for tag in entry.tags] == [STATUS[incident.status]]


@given(pages)
@settings(deadline=None, max_examples=50)
def test_feeds_are_valid_by_their_schemas(page: Page) -> None:
    written = texts(page)
    for form, schema in SCHEMAS.items():
        schema.assertValid(etree.fromstring(written[form].encode()))


@pytest.mark.parametrize(
    ("form", "was", "became"),
    [
        ("atom", "<updated>", "<updated>x"),
        ("atom", "<id>", "<ids>"),
        ("atom", ' type="html"', ' type="markup"'),
        ("atom", ' href="https', ' src="https'),
        ("rss", ' version="2.0"', ' version="2.1"'),
        ("rss", "<pubDate>", "<pubDate>x"),
        ("rss", ' isPermaLink="false"', ' isPermaLink="no"'),
        ("rss", "<description>", "<summary>"),
    ],
)
def test_the_schemas_refuse_broken_feeds(form: str, was: str, became: str) -> None:
    text = texts(render(shop(outage("Checkout is down")), Audience.PUBLIC))[form]
    assert was in text
    wrong = text.replace(was, became)
    if was.startswith("<") and became.endswith(">"):
        wrong = wrong.replace(was.replace("<", "</"), became.replace("<", "</"))
    assert not SCHEMAS[form].validate(etree.fromstring(wrong.encode()))


@pytest.mark.parametrize("text", [*HOSTILE, "x\ry", "tab\there", "&lt;b&gt;"])
def test_text_survives_every_feed_format(text: str) -> None:
    incident = replace(outage(text), source=IncidentSource.MANUAL)
    said = [replace(one, body=text) for one in incident.updates]
    facts = replace(shop(replace(incident, updates=said)), title=text)
    written = texts(render(facts, Audience.PUBLIC))
    for title, entries in (
        of_rss(written["rss"]),
        of_atom(written["atom"]),
        of_json(written["json"]),
    ):
        assert title == clean(text)
        assert [entry.title for entry in entries] == [clean(text)]
        assert squeezed("".join(Content(entries[0].content).paragraphs[2:])) == squeezed(
            clean(text)
        )


def test_a_page_without_incidents_has_empty_feeds() -> None:
    page = render(replace(shop(outage("")), incidents=[]), Audience.PUBLIC)
    written = texts(page)
    assert of_rss(written["rss"]) == ("Shop", [])
    assert of_atom(written["atom"]) == ("Shop", [])
    assert of_json(written["json"]) == ("Shop", [])
    root = ElementTree.fromstring(written["atom"])
    assert from_text(text_of(root, f"{ATOM}updated")) == page.updated_at


def test_feeds_do_not_change_with_the_time_of_reading() -> None:
    page = render(shop(outage("x is down")), Audience.PUBLIC)
    assert texts(replace(page, updated_at=Instant(page.updated_at + HOUR))) == texts(page)


def test_the_update_time_of_a_feed_is_its_newest_update() -> None:
    older, newer = outage("x is down"), outage("x is down")
    older = replace(
        older, updates=[replace(older.updates[0], created_at=Instant(page_world.NOW - HOUR))]
    )
    facts = replace(shop(older), incidents=[older, replace(newer, uid=UUID(int=5))])
    root = ElementTree.fromstring(texts(render(facts, Audience.PUBLIC))["atom"])
    assert from_text(text_of(root, f"{ATOM}updated")) == page_world.NOW
