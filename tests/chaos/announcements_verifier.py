"""Verifies what operators announced: updates of incidents, mails to subscribers, the status page
and changes. It imports nothing of the product.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .verifier import SLACK_SECONDS, text_of

# The status page states the age of its answers; docs/reference/status-pages.md has the bound.
PAGE_SECONDS = 1.0


@dataclass
class Announced:
    """An incident of the load: the texts of its acknowledged updates, in their order."""

    identifier: str
    title: str
    # The first text is the one with which the incident began.
    texts: list[str]
    opened_at: float
    # When its end was requested, whether it was acknowledged or not.
    ended_at: float = float("inf")
    # Texts of requests without a clear answer, which may be stored.
    unclear: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class PageRead:
    """A status page as a reader got it: the titles of its active incidents."""

    asked_at: float
    answered_at: float
    active: frozenset[str]


@dataclass(frozen=True)
class Mail:
    at: float
    to: str
    text: str


def verify_updates(announced: Announced, stored: list[str]) -> list[str]:
    """Every acknowledged update is stored once, in its order, and nothing else is."""
    wrong = [
        f"{announced.title}: update {text} is stored {count} times"
        for text, count in Counter(stored).items()
        if count > 1
    ]
    wrong += [
        f"{announced.title}: update {text} was not sent"
        for text in stored
        if text not in announced.texts and text not in announced.unclear
    ]
    acknowledged = [text for text in stored if text in announced.texts]
    if list(dict.fromkeys(acknowledged)) != announced.texts:
        wrong.append(f"{announced.title}: stored {acknowledged}, acknowledged {announced.texts}")
    return wrong


def verify_mails(
    announced: list[Announced], subscribers: list[str], mails: list[Mail]
) -> list[str]:
    """Each subscriber got each acknowledged update at least once, in order by the first mails."""
    wrong = []
    for address in subscribers:
        own = sorted((mail for mail in mails if mail.to == address), key=lambda mail: mail.at)
        for one in announced:
            # The words of one text are no part of another text.
            words = [mail.text.split() for mail in own]
            first = [
                next((place for place, found in enumerate(words) if text in found), None)
                for text in one.texts
            ]
            missing = [text for text, place in zip(one.texts, first, strict=True) if place is None]
            places = [place for place in first if place is not None]
            if missing:
                wrong.append(f"{one.title}: {address} got no mail with {' '.join(missing)}")
            if places != sorted(places):
                wrong.append(f"{one.title}: {address} got the updates in the order {places}")
    return wrong


def verify_page(announced: list[Announced], reads: list[PageRead]) -> list[str]:
    """The status page shows an incident from PAGE_SECONDS after its begin was acknowledged until
    its end is requested.
    """
    wrong = []
    bound = PAGE_SECONDS + SLACK_SECONDS
    for read in reads:
        wrong += [
            f"{one.title}: missing on the page that was read at {text_of(read.asked_at)}"
            for one in announced
            if one.opened_at + bound <= read.asked_at and read.answered_at < one.ended_at
            if one.title not in read.active
        ]
    return wrong


def verify_changes(acknowledged: list[str], groups: list[dict[str, Any]]) -> list[str]:
    """Every acknowledged change is stored once."""
    stored = Counter(group["external_id"] for group in groups)
    return [
        f"change {name} is stored {stored[name]} times"
        for name in acknowledged
        if stored[name] != 1
    ]
