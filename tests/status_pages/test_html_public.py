"""The HTML of a status page is escaped, complete and small."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from uuid import UUID

from hypothesis import given, settings

from leadline.http.status_pages.public import page_text as words
from leadline.http.status_pages.public.html_renderer import (
    history_html,
    page_html,
    policy,
)
from leadline.http.status_pages.public.language import month_name
from leadline.http.status_pages.public.urls import Addresses
from leadline.storage.core.availability import figure
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.core.sli import Split, total
from leadline.storage.incidents.rules.incident import IncidentStatus
from leadline.storage.status_pages.rules.branding import NO_BRANDING, Announcement, Branding, Level
from leadline.storage.status_pages.rules.status_page import (
    Audience,
    ComponentDay,
    ComponentFacts,
    ComponentMeasurement,
    ComponentSource,
    ComponentStatus,
    Now,
    Page,
    PageFacts,
    Visibility,
    render,
)
from leadline.storage.status_pages.rules.status_page_history import month_of, months_shown
from tests.status_pages.test_status_page_rule import outage
from tests.support.worlds import page_world
from tests.support.worlds.page_world import NOW, SECRET

PLACES = Addresses("https://status.example", "shop")
PAGE_BYTES_MOST = 60_000
pages = page_world.facts().map(lambda facts: render(facts, Audience.PUBLIC))
_UIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Reader(HTMLParser):
    """Collects the texts of a page by tag, and the tags that were not closed."""

    VOID = frozenset({"meta", "link", "img", "br", "input"})

    def __init__(self, found: bytes) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.scripts = 0
        self.inline = 0
        self.feed(found.decode())
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.inline += sum(name == "style" or name.startswith("on") for name, _ in attrs)
        self.inline += tag == "style"
        if tag not in self.VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inline += sum(name == "style" or name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data


def read(page: Page, branding: Branding = NO_BRANDING) -> Reader:
    return Reader(page_html(page, branding, PLACES))


def plain(text: str) -> str:
    return " ".join(text.encode(errors="replace").decode().replace("\0", "\ufffd").split())


@settings(max_examples=60)
@given(pages)
def test_the_page_shows_all_public_texts_and_nothing_private(page: Page) -> None:
    found = page_html(page, NO_BRANDING, PLACES)
    reader = Reader(found)
    assert reader.open == []
    assert (reader.scripts, reader.inline) == (1, 0)
    text = found.decode()
    assert SECRET not in text
    shown = {str(one.uid) for one in (*page.active, *page.recent)}
    assert set(_UIDS.findall(text)) == shown, "only the ids of incidents appear in the text"
    (head,) = reader.texts["h1"]
    assert plain(head) == plain(words.status_line(page).text)
    states = [plain(said) for said in reader.texts.get("span", [])]
    for component in page.components:
        assert words.STATUS[component.status] in states
    for incident in page.active:
        assert plain(incident.title) in [plain(one) for one in reader.texts["h2"]]
    body = plain(" ".join(reader.texts["main"]))
    for incident in [*page.active]:
        for update in incident.updates:
            assert plain(update.body) in body


def shop(*statuses: ComponentStatus, days: int = 90) -> PageFacts:
    """Returns facts with measured components, each with three bad days out of 90."""
    parts = []
    for n, status in enumerate(statuses):
        made = [
            ComponentDay(
                Instant(NOW - NOW % DAY - (days - 1 - at) * DAY),
                Split(good_us=DAY - 6 * MINUTE, bad_us=6 * MINUTE)
                if (at + n) % 30 == 0
                else Split(good_us=DAY),
                total=1_440,
            )
            for at in range(days)
        ]
        split = total(day.split for day in made)
        parts.append(
            ComponentFacts(
                uid=UUID(int=n + 1),
                name=f"Part number {n}",
                description="",
                group="",
                source=ComponentSource.MONITOR,
                anchor=UUID(int=1_000 + n),
                now=Now(status),
                measured=ComponentMeasurement(
                    figure=figure(split), split=split, sample=1_440 * days, days=made
                ),
                updated_at=NOW,
            )
        )
    return PageFacts(
        slug="shop",
        title="Shop",
        visibility=Visibility.LISTED,
        project=None,
        components=parts,
        incidents=(),
        maintenance=(),
        as_of=NOW,
    )


def test_fifty_components_stay_within_the_size_limit() -> None:
    page = render(shop(*[ComponentStatus.OPERATIONAL] * 50), Audience.PUBLIC)
    assert len(page_html(page, NO_BRANDING, PLACES)) < PAGE_BYTES_MOST


def test_each_bad_day_has_a_title_and_a_table_row() -> None:
    page = render(shop(ComponentStatus.MAJOR_OUTAGE), Audience.PUBLIC)
    reader = read(page)
    assert reader.texts["h1"] == ["Major outage"]
    titles = [text for text in reader.texts["title"] if "down" in text and ":" in text]
    assert len(titles) == 3
    rows = [plain(text) for text in reader.texts["tr"][1:]]
    assert len(rows) == 4
    assert rows[0].startswith("Part number 0")
    assert all("down 6 min" in row for row in rows[:3])
    assert "all other days" in rows[3]


def test_branding_and_announcement_are_escaped() -> None:
    hostile = "<script>alert(1)</script>"
    branding = Branding(
        product_name=hostile,
        accent_color="#AABBCC",
        logo_url="https://cdn.example/logo.svg",
        footer_text=hostile,
        support_url="https://help.example/",
        announcement=Announcement(enabled=True, text=hostile, level=Level.CRITICAL),
    )
    reader = read(render(shop(ComponentStatus.OPERATIONAL), Audience.PUBLIC), branding)
    assert reader.scripts == 1
    assert sum(hostile in text for text in [*reader.texts["p"], *reader.texts["span"]]) == 3
    assert "https://cdn.example" in policy(branding)
    assert "cdn.example" not in policy(NO_BRANDING)


def test_a_disabled_announcement_is_not_shown() -> None:
    branding = Branding(announcement=Announcement(text="Later"))
    assert (
        "Later"
        not in page_html(
            render(shop(ComponentStatus.OPERATIONAL), Audience.PUBLIC), branding, PLACES
        ).decode()
    )


def test_links_of_an_unlisted_page_have_its_token_and_it_has_noindex() -> None:
    page = replace(
        render(shop(ComponentStatus.OPERATIONAL), Audience.PUBLIC), visibility=Visibility.UNLISTED
    )
    text = page_html(page, NO_BRANDING, replace(PLACES, token="leadline_page_x")).decode()
    assert 'content="noindex"' in text
    own = re.findall(r'href="(https://status\.example[^"]*)"', text)
    assert own
    assert all("token=leadline_page_x" in link for link in own)


def test_a_month_shows_its_incidents_and_links_to_other_months() -> None:
    month = month_of(None, NOW)
    assert not isinstance(month, str)
    known = months_shown(NOW)
    incident = replace(outage("Search was slow"), status=IncidentStatus.RESOLVED, resolved_at=NOW)
    found = history_html("Shop", NO_BRANDING, PLACES, month, [incident], "/more", NOW).decode()
    assert "Search was slow" in found
    assert "1 incident between" in found
    assert "and now." in found
    assert month_name(known[0]) in found
    assert f"month={known[1]}" in found
    assert 'href="/more"' in found
    last = month_of(known[-1], NOW)
    assert not isinstance(last, str)
    found = history_html("Shop", NO_BRANDING, PLACES, last, [], None, NOW).decode()
    assert "No incidents" in found
    assert f"month={known[-2]}" in found


def test_a_listed_page_has_a_preview_for_other_sites() -> None:
    page = render(shop(ComponentStatus.MAJOR_OUTAGE), Audience.PUBLIC)
    text = page_html(page, NO_BRANDING, PLACES).decode()
    assert 'property="og:title" content="Major outage' in text
    hidden = replace(page, visibility=Visibility.UNLISTED)
    assert "og:" not in page_html(hidden, NO_BRANDING, PLACES).decode()
