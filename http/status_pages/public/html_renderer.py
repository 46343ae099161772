"""HTML of a status page, with the texts of the feeds. It can be read without scripts.

The HTML shows only data of the rendered page. The only external resource is the logo of the
branding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from ....storage.core.instant import DAY, Instant
from ....storage.status_pages.rules.branding import Branding, origin_of
from ....storage.status_pages.rules.page_month import ReportMonth
from ....storage.status_pages.rules.status_page import (
    Component,
    ComponentDay,
    Incident,
    Maintenance,
    Page,
    Visibility,
)
from ....storage.status_pages.rules.status_page_history import Month, months_shown
from ...ui.formatting import Moment, clock, moment
from ...ui.render import POLICY, environment_of
from ...wire.own_paths import with_base_path
from . import page_text as words
from .language import (
    dated,
    days_range,
    listed,
    many,
    month_name,
    phrase,
    phrase_html,
    reader_now,
    utc_day,
)
from .language import day as day_name
from .latency_plot import LatencyItem, latency_item
from .uptime_bars import DAYS_KEPT, bars, is_plain
from .urls import FEED_TYPES, Addresses

FEED_NAMES: Final = {"rss": "RSS", "atom": "Atom", "json": "JSON"}
_FEEDS: Final = [(form, FEED_TYPES[form], name) for form, name in FEED_NAMES.items()]


@dataclass(frozen=True, slots=True)
class UpdateItem:
    at: Moment
    mark: str
    word: str
    body: str


@dataclass(frozen=True, slots=True)
class PublicIncidentItem:
    """`url` is permanent. `about` names the affected components."""

    url: str
    title: str
    mark: str
    line: str
    began: Moment
    last: str
    about: str
    updates: Sequence[UpdateItem]


@dataclass(frozen=True, slots=True)
class PublicMaintenanceItem:
    title: str
    running: bool
    when: str
    about: str


@dataclass(frozen=True, slots=True)
class ComponentItem:
    name: str
    group: str
    mark: str
    status: str
    note: str
    figure: words.FigureText | None
    bars: Markup | None
    rows: Sequence[tuple[str, str]]
    latency: LatencyItem | None


def policy(branding: Branding) -> str:
    """Returns the Content-Security-Policy of a public page: the console's plus the logo host."""
    if not branding.logo_url:
        return POLICY
    return POLICY.replace("img-src 'self'", f"img-src 'self' {origin_of(branding.logo_url)}")


# Every site may frame the widget, but no other page.
WIDGET_POLICY: Final = POLICY.replace("frame-ancestors 'none'", "frame-ancestors *")


def page_html(
    page: Page,
    branding: Branding,
    addresses: Addresses,
    *,
    framed: bool = False,
) -> bytes:
    """Returns the HTML of a page that was rendered for the public.

    If `framed`, links open outside the frame.
    """
    now = page.updated_at
    parts = [_part(one, now) for one in page.components]
    planned = [_maintenance(one, page) for one in page.maintenance]
    past = [(one.started_at, _incident(one, addresses, now, page)) for one in page.recent]
    return _render(
        "page.html",
        page.title,
        branding,
        addresses,
        listed=page.visibility is Visibility.LISTED,
        first=words.status_line(page),
        beneath=words.line_beneath(page),
        updated=Moment(*_moment(now)),
        active=[_incident(one, addresses, now, page) for one in page.active],
        running=[one for one in planned if one.running],
        planned=[one for one in planned if not one.running],
        # In page order. A group begins at its first component.
        groups=[(name, list(members)) for name, members in groupby(parts, lambda p: p.group)],
        table=[(part.name, part.rows) for part in parts],
        latencies=[(part.name, part.latency.row) for part in parts if part.latency],
        past=[
            (name, [item for _, item in items])
            for name, items in groupby(past, lambda one: dated(one[0]))
        ],
        more=page.recent_more,
        framed=framed,
    )


def widget_html(page: Page, branding: Branding, addresses: Addresses) -> bytes:
    """Returns the first line only, for a frame on another site."""
    return _render(
        "widget.html",
        page.title,
        branding,
        addresses,
        first=words.status_line(page),
        updated=Moment(*_moment(page.updated_at)),
    )


def history_html(
    title: str,
    branding: Branding,
    addresses: Addresses,
    month: Month,
    incidents: Sequence[Incident],
    following: str | None,
    now: Instant,
) -> bytes:
    """Returns the incidents of a month. `following` is the URL of the next part of the month."""
    known = months_shown(now)
    at = known.index(month.name)
    ends = _ends(month, now)
    some = many("history.some", len(incidents), **ends)
    count = some if incidents else phrase("history.none", **ends)
    return _render(
        "history.html",
        title,
        branding,
        addresses,
        listed=addresses.token is None,
        month=month_name(month.name),
        count=count,
        incidents=[_incident(one, addresses, now) for one in incidents],
        following=following,
        later=_month_link(addresses, known[at - 1]) if at else None,
        earlier=_month_link(addresses, known[at + 1]) if at + 1 < len(known) else None,
    )


def month_report_html(
    title: str,
    branding: Branding,
    addresses: Addresses,
    month: ReportMonth,
    known: Sequence[str],
    lines: Sequence[object],
    *,
    whole: bool,
) -> bytes:
    """Returns the report of a month. `known` are all months, latest first."""
    at = known.index(month.name)
    return _render(
        "month_report.html",
        title,
        branding,
        addresses,
        listed=False,
        month=month_name(month.name),
        zone=month.zone,
        whole=whole,
        lines=lines,
        later=(addresses.month(known[at - 1]), month_name(known[at - 1])) if at else None,
        earlier=(addresses.month(known[at + 1]), month_name(known[at + 1]))
        if at + 1 < len(known)
        else None,
    )


def incident_html(
    title: str,
    branding: Branding,
    addresses: Addresses,
    incident: Incident,
    names: Sequence[str],
    now: Instant,
) -> bytes:
    """Returns the permanent page of an incident. `names` are its components on the page."""
    item = _incident(incident, addresses, now)
    return _render(
        "incident.html",
        title,
        branding,
        addresses,
        listed=addresses.token is None,
        incident=replace(item, about=_affected(names)),
        is_open=incident.resolved_at is None,
    )


_KINDS: Final = ("slack", "teams", "webhook")


def subscribe_html(
    title: str,
    branding: Branding,
    addresses: Addresses,
    *,
    components: Sequence[tuple[str, str]],
    can_mail: bool,
    can_link: bool,
    typed: Mapping[str, str],
    chosen: Sequence[str],
    wrong: Mapping[str, str],
) -> bytes:
    """Returns the form with its submitted values. `wrong` contains the fault of each field."""
    return _render(
        "subscribe.html",
        title,
        branding,
        addresses,
        listed=False,
        components=components,
        can_mail=can_mail,
        can_link=can_link,
        kinds=[(kind, phrase(f"subscribe.{kind}")) for kind in _KINDS],
        typed={"email": "", "url": "", "kind": "", **typed},
        chosen=chosen,
        wrong={"email": "", "url": "", "component": "", **wrong},
    )


def text_html(
    title: str, branding: Branding, addresses: Addresses, heading: str, text: str, button: str
) -> bytes:
    """Returns a page with a text and a submit button. Without a slug, no status page is linked."""
    return _render(
        "said.html",
        title,
        branding,
        addresses,
        listed=False,
        heading=heading,
        text=text,
        button=button,
    )


def _affected(names: Sequence[str]) -> str:
    return phrase("affects", names=listed(names)) if names else ""


def _month_link(addresses: Addresses, name: str) -> tuple[str, str]:
    return addresses.history(name), month_name(name)


def _ends(month: Month, now: Instant) -> dict[str, str]:
    shown = month.shown
    last = Instant(shown.until - 1)
    until = phrase("history.now") if last >= now - now % DAY else day_name(last)
    return {"from": day_name(shown.from_), "to": until}


def _part(one: Component, now: Instant) -> ComponentItem:
    figure = words.figure_of(one)
    why = words.why_no_data(one)
    note = " ".join(
        text for text in (one.description, f"{phrase('no_data', why=why)}." if why else "") if text
    )
    days = () if one.measured is None else one.measured.days
    said = [_day_text(day, now) for day in days]
    drawn = None
    if days and figure is not None:
        shown = {"figure": figure.text, "note": figure.note}
        label = phrase("figure.of_days", name=one.name, n=len(days), **shown)
        drawn = bars(days, [name for name, _ in said], [text for _, text in said], label)
    return ComponentItem(
        name=one.name,
        group=one.group,
        mark=words.MARK[one.status],
        status=words.status_word(one.status),
        note=note,
        figure=figure,
        bars=drawn,
        rows=_rows(said),
        latency=_latency(one),
    )


def _latency(one: Component) -> LatencyItem | None:
    if one.latency is None:
        return None
    until = one.latency.until
    return latency_item(one.name, one.latency, Moment(*_moment(until, until)))


def _day_text(day: ComponentDay, now: Instant) -> tuple[str, str]:
    return _named_day(day, reader_now().language, is_today=day.day == now - now % DAY)


@lru_cache(maxsize=DAYS_KEPT)
def _named_day(day: ComponentDay, _language: str, *, is_today: bool) -> tuple[str, str]:
    """Returns the name of the day, and its trouble if any, in the language of the reader."""
    return utc_day(day.day), "" if is_plain(day) else words.day_text(day, is_today=is_today)


def _rows(said: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Returns the days with trouble, latest first. Equal neighbours are one row."""
    if not said:
        return [(phrase("days.all"), phrase("day.not_measured"))]
    found: list[tuple[str, str]] = []
    for text, group in groupby(reversed(said), lambda item: item[1]):
        if not text:
            continue
        names = [name for name, _ in group]
        days = names[0] if len(names) == 1 else days_range(names[-1], names[0])
        found.append((days, text))
    if any(not text for _, text in said):
        others = phrase("days.all_others") if found else phrase("days.all_of", n=len(said))
        found.append((others, phrase("days.operational")))
    return found


def _incident(
    one: Incident, addresses: Addresses, now: Instant, page: Page | None = None
) -> PublicIncidentItem:
    mark = words.incident_mark(one)
    said = [
        UpdateItem(
            Moment(*_moment(update.created_at, now)),
            "up" if update.status == "resolved" else words.open_mark(one),
            words.update_word(update.status),
            update.body,
        )
        for update in reversed(one.updates)
    ]
    if one.postmortem is not None:
        at = Moment(*_moment(one.postmortem.published_at, now))
        said.insert(0, UpdateItem(at, "up", phrase("incident.postmortem"), one.postmortem.body))
    named = [] if page is None else [c.name for c in page.components if c.uid in one.components]
    return PublicIncidentItem(
        url=addresses.incident(one.uid),
        about=_affected(named),
        title=one.title,
        mark=mark,
        line=words.incident_line(one),
        began=Moment(*_moment(one.started_at, now)),
        last=next((each.body for each in reversed(one.updates) if each.body), ""),
        updates=said,
    )


def _maintenance(one: Maintenance, page: Page) -> PublicMaintenanceItem:
    names = {each.uid: each.name for each in page.components}
    return PublicMaintenanceItem(
        title=one.reason or phrase("line.planned"),
        running=words.is_running(one, page.updated_at),
        when=words.planned(one, page.updated_at),
        about=_affected([names[uid] for uid in one.components if uid in names]),
    )


def _moment(at: Instant, now: Instant | None = None) -> tuple[str, str, str]:
    """Returns the parts of a Moment: the text is the time of day, with the day if it differs."""
    full = moment(at, at)
    text = clock(at, seconds=False)
    if now is None:
        return full.iso, words.exactly(at), f"{text} UTC"
    if at - at % DAY != now - now % DAY:
        text = f"{day_name(at)}, {text}"
    return full.iso, words.exactly(at), text


def _render(
    template: str, title: str, branding: Branding, addresses: Addresses, **values: Any
) -> bytes:
    text = (
        environment_of(Path(__file__).parent)
        .get_template(template)
        .render(
            title=title,
            branding=branding,
            addresses=addresses,
            accent=branding.accent_color.removeprefix("#").lower(),
            feeds=_FEEDS if addresses.slug else [],
            phrase=phrase_html,
            lang=reader_now().language,
            switches=reader_now().switches(),
            **values,
        )
    )
    # A lone surrogate cannot be encoded. No table can store one, so replacement is sufficient.
    return with_base_path(text).encode(errors="replace")
