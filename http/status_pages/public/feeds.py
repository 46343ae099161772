"""Incident feeds of a status page: RSS 2.0, Atom (RFC 4287) and JSON Feed 1.1.

All formats have the same entries and texts, rendered from the public page. An entry is an incident,
open incidents first. Its id survives all edits. Its content is HTML, in which text from users is
escaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import format_datetime
from typing import Final
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, SubElement, tostring

import msgspec
from markupsafe import Markup

from ....storage.core.instant import Instant, to_datetime, to_text
from ....storage.status_pages.rules.status_page import Incident, Page
from ...ui.plots.xml_text import legal
from .language import phrase
from .page_text import exactly, incident_line, update_word
from .urls import Addresses

JSON_VERSION: Final = "https://jsonfeed.org/version/1.1"
ATOM_NAMESPACE: Final = "http://www.w3.org/2005/Atom"

_DECLARED: Final = '<?xml version="1.0" encoding="utf-8"?>\n'


@dataclass(frozen=True, slots=True)
class FeedEntry:
    id: str
    url: str
    title: str
    status: str
    published: Instant
    updated: Instant
    content: str


@dataclass(frozen=True, slots=True)
class Feed:
    """Content of all feed formats. `id` is the page URL without the token."""

    id: str
    title: str
    about: str
    page_url: str
    feed_url: str
    updated: Instant
    entries: Sequence[FeedEntry]


def feed_text(form: str, page: Page, addresses: Addresses) -> str:
    """Returns a feed. `form` is rss, atom or json. The URLs are absolute."""
    return _FORMS[form](feed_of(page, addresses, addresses.feed(form)))


def feed_of(page: Page, addresses: Addresses, feed_url: str) -> Feed:
    """Returns the feed. `updated` is the latest entry, or the render instant without entries."""
    entries = [_entry(incident, addresses) for incident in (*page.active, *page.recent)]
    return Feed(
        id=urlsplit(addresses.page)._replace(query="", fragment="").geturl(),
        title=legal(page.title),
        about=phrase("feed.about"),
        page_url=addresses.page,
        feed_url=feed_url,
        updated=max((entry.updated for entry in entries), default=page.updated_at),
        entries=entries,
    )


def _entry(incident: Incident, addresses: Addresses) -> FeedEntry:
    return FeedEntry(
        id=incident.uid.urn,
        url=addresses.incident(incident.uid),
        title=legal(incident.title),
        status=update_word(incident.status),
        published=incident.started_at,
        updated=_updated_at(incident),
        content=_content(incident),
    )


def _updated_at(incident: Incident) -> Instant:
    found = incident.postmortem
    return incident.updated_at if found is None else max(incident.updated_at, found.updated_at)


def _content(incident: Incident) -> str:
    """Returns the status of the incident, its postmortem, then its updates, newest first."""
    impact = phrase(f"impact.{incident.impact.value}")
    parts = [Markup("<p>{}. {}.</p>").format(incident_line(incident), impact)]
    found = incident.postmortem
    if found is not None:
        parts.append(_entry_text(phrase("incident.postmortem"), found.published_at, found.body))
    parts += [
        _entry_text(update_word(each.status), each.created_at, each.body)
        for each in reversed(incident.updates)
    ]
    return str(Markup("\n").join(parts))


def _entry_text(word: str, at: Instant, text: str) -> Markup:
    head = Markup('<p><strong>{}</strong>, <time datetime="{}">{}</time></p>').format(
        word, to_text(at), exactly(at)
    )
    body = legal(text).strip()
    if not body:
        return head
    return head + Markup("\n<p>{}</p>").format(Markup("<br>\n").join(body.split("\n")))


def _rss(feed: Feed) -> str:
    root = Element("rss", {"version": "2.0", "xmlns:atom": ATOM_NAMESPACE})
    channel = SubElement(root, "channel")
    _add(channel, "title", feed.title)
    _add(channel, "link", feed.page_url)
    _add(channel, "description", feed.about)
    _add(channel, "lastBuildDate", _rfc822(feed.updated))
    its_own = {"rel": "self", "type": "application/rss+xml", "href": feed.feed_url}
    SubElement(channel, "atom:link", its_own)
    for entry in feed.entries:
        item = SubElement(channel, "item")
        _add(item, "title", entry.title)
        _add(item, "link", entry.url)
        _add(item, "guid", entry.id, isPermaLink="false")
        _add(item, "category", entry.status)
        _add(item, "pubDate", _rfc822(entry.published))
        # RSS 2.0 has no element for the update instant of an item.
        _add(item, "atom:updated", to_text(entry.updated))
        _add(item, "description", entry.content)
    return _written(root)


def _atom(feed: Feed) -> str:
    root = Element("feed", {"xmlns": ATOM_NAMESPACE})
    _add(root, "id", feed.id)
    _add(root, "title", feed.title)
    _add(root, "subtitle", feed.about)
    _add(root, "updated", to_text(feed.updated))
    _add(SubElement(root, "author"), "name", feed.title)
    page = {"rel": "alternate", "type": "text/html", "href": feed.page_url}
    SubElement(root, "link", page)
    its_own = {"rel": "self", "type": "application/atom+xml", "href": feed.feed_url}
    SubElement(root, "link", its_own)
    for entry in feed.entries:
        item = SubElement(root, "entry")
        _add(item, "id", entry.id)
        _add(item, "title", entry.title)
        _add(item, "published", to_text(entry.published))
        _add(item, "updated", to_text(entry.updated))
        SubElement(item, "category", {"term": entry.status})
        SubElement(item, "link", {**page, "href": entry.url})
        _add(item, "content", entry.content, type="html")
    return _written(root)


def _json(feed: Feed) -> str:
    items = [
        {
            "id": entry.id,
            "url": entry.url,
            "title": entry.title,
            "content_html": entry.content,
            "date_published": to_text(entry.published),
            "date_modified": to_text(entry.updated),
            "tags": [entry.status],
        }
        for entry in feed.entries
    ]
    document = {
        "version": JSON_VERSION,
        "title": feed.title,
        "description": feed.about,
        "home_page_url": feed.page_url,
        "feed_url": feed.feed_url,
        "items": items,
    }
    return msgspec.json.encode(document).decode()


_FORMS: Final = {"rss": _rss, "atom": _atom, "json": _json}


def _add(parent: Element, tag: str, text: str, **attributes: str) -> None:
    SubElement(parent, tag, attributes).text = text


def _rfc822(at: Instant) -> str:
    return format_datetime(to_datetime(at), usegmt=True)


def _written(root: Element) -> str:
    return _DECLARED + tostring(root, encoding="unicode") + "\n"
