"""Messages to subscribers of a status page, with the words of the page."""

from typing import Any, Final

from ....probes.senders.subscriber_chat import ChatMessage
from ....probes.senders.subscriber_mail import SubscriberMail
from ....storage.core.instant import to_text
from ....storage.notifications.rules.notification import NOTICE_EVENT
from ....storage.status_pages.rules.subscription import CONFIRM_EVENT, SubscriberNotice
from ....storage.status_pages.transactions.tell_maintenance import MAINTENANCE_EVENT
from .page_text import MAINTENANCE_STEP, exactly, listed, update_word
from .urls import Addresses

CONFIRM_LINK: Final = "Confirm subscription"
INCIDENT_LINK: Final = "View the incident"
PAGE_LINK: Final = "View the status page"


def confirm_address(base: str, token: str) -> str:
    return f"{base}/status/confirm/{token}"


def leave_address(base: str, token: str) -> str:
    """Returns the URL of the form that ends a subscription."""
    return f"{base}/status/unsubscribe/{token}"


def one_click_address(base: str, token: str) -> str:
    """Returns the URL whose POST ends a subscription, with any body (RFC 8058)."""
    return f"{base}/api/v1/public/subscriptions/{token}"


def confirm_letter(uid: str, to: str, page_title: str, base: str, token: str) -> SubscriberMail:
    return SubscriberMail(
        uid=uid,
        to=to,
        subject=f"Confirm your subscription to {page_title}",
        paragraphs=(
            f"You requested incident updates from {page_title}.",
            "Confirm within 24 hours. If this was not you, ignore this e-mail.",
        ),
        link=confirm_address(base, token),
        link_text=CONFIRM_LINK,
    )


def notice_letter(
    uid: str, to: str, page_title: str, notice: SubscriberNotice, page: Addresses, token: str
) -> SubscriberMail:
    return SubscriberMail(
        uid=uid,
        to=to,
        subject=notice_subject(page_title, notice.title),
        paragraphs=notice_paragraphs(notice),
        link=_link_of(notice, page),
        link_text=INCIDENT_LINK if notice.step is None else PAGE_LINK,
        thread=f"{notice.incident}.{page.slug}",
        leave=one_click_address(page.base, token),
        leave_page=leave_address(page.base, token),
    )


def notice_subject(page_title: str, title: str) -> str:
    """Returns the subject. It is constant per incident, as mail programs group threads by it."""
    return f"{page_title}: {title}"


def notice_paragraphs(notice: SubscriberNotice) -> tuple[str, ...]:
    about = f"Affects: {listed(notice.components)}." if notice.components else ""
    if notice.step is not None and notice.ends_at is not None:
        word = MAINTENANCE_STEP[notice.step]
        when = f"From {exactly(notice.started_at)} to {exactly(notice.ends_at)}."
        return tuple(part for part in (f"{word}: {notice.title}", when, about) if part)
    parts = (f"{update_word(notice.status)}: {notice.title}", notice.body, about)
    return (*(part for part in parts if part), exactly(notice.at))


def confirm_document(
    page_title: str, challenge: str, page: Addresses, token: str
) -> dict[str, Any]:
    return {
        "event": CONFIRM_EVENT,
        "challenge": challenge,
        "page": _page_link(page_title, page),
        "unsubscribe_url": one_click_address(page.base, token),
    }


def _link_of(notice: SubscriberNotice, page: Addresses) -> str:
    """Returns the page of the incident; a maintenance is on the status page itself."""
    return page.incident(notice.incident) if notice.step is None else page.page


def _maintenance_document(
    page_title: str, notice: SubscriberNotice, page: Addresses, token: str
) -> dict[str, Any]:
    assert notice.step is not None, "the notice is of a maintenance"
    assert notice.ends_at is not None, "the notice is of a maintenance"
    return {
        "event": MAINTENANCE_EVENT,
        "page": _page_link(page_title, page),
        "maintenance": {
            "id": str(notice.incident),
            "title": notice.title,
            "status": notice.step.value,
            "starts_at": to_text(notice.started_at),
            "ends_at": to_text(notice.ends_at),
        },
        "components": list(notice.components),
        "unsubscribe_url": one_click_address(page.base, token),
    }


def notice_document(
    page_title: str, notice: SubscriberNotice, page: Addresses, token: str
) -> dict[str, Any]:
    if notice.step is not None:
        return _maintenance_document(page_title, notice, page, token)
    return {
        "event": NOTICE_EVENT,
        "page": _page_link(page_title, page),
        "incident": {
            "id": str(notice.incident),
            "url": page.incident(notice.incident),
            "title": notice.title,
            "impact": notice.impact.value,
            "started_at": to_text(notice.started_at),
        },
        "update": {
            "seq": notice.seq,
            "status": None if notice.status is None else notice.status.value,
            "body": notice.body,
            "created_at": to_text(notice.at),
        },
        "components": list(notice.components),
        "unsubscribe_url": one_click_address(page.base, token),
    }


def confirm_chat(page_title: str, base: str, token: str) -> ChatMessage:
    """Returns the message to a channel that somebody subscribed. A member of it confirms."""
    return ChatMessage(
        title=f"Confirm the subscription to {page_title}",
        paragraphs=(
            f"Somebody requested incident updates from {page_title} for this channel.",
            "Confirm within 24 hours. If nobody here did, ignore this message.",
        ),
        links=((confirm_address(base, token), CONFIRM_LINK),),
    )


def notice_chat(
    page_title: str, notice: SubscriberNotice, page: Addresses, token: str
) -> ChatMessage:
    return ChatMessage(
        title=notice_subject(page_title, notice.title),
        paragraphs=notice_paragraphs(notice),
        links=(
            (_link_of(notice, page), INCIDENT_LINK if notice.step is None else PAGE_LINK),
            (leave_address(page.base, token), "Unsubscribe"),
        ),
    )


def _page_link(title: str, page: Addresses) -> dict[str, str]:
    return {"title": title, "url": page.page}
