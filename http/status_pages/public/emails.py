"""Messages to subscribers of a status page, with the words of the page."""

from typing import Any

from ....probes.senders.subscriber_chat import ChatMessage
from ....probes.senders.subscriber_mail import SubscriberMail
from ....storage.core.instant import to_text
from ....storage.notifications.rules.notification import NOTICE_EVENT
from ....storage.status_pages.rules.subscription import CONFIRM_EVENT, SubscriberNotice
from ....storage.status_pages.transactions.tell_maintenance import MAINTENANCE_EVENT
from .language import listed, phrase, reader_now
from .page_text import exactly, update_word
from .urls import Addresses


def confirm_address(base: str, token: str) -> str:
    return f"{base}/status/confirm/{token}{_in_language()}"


def leave_address(base: str, token: str) -> str:
    """Returns the URL of the form that ends a subscription."""
    return f"{base}/status/unsubscribe/{token}{_in_language()}"


def _in_language() -> str:
    """Returns the query of a page in the language of its message."""
    chosen = reader_now().chosen
    return "" if chosen is None else f"?lang={chosen}"


def one_click_address(base: str, token: str) -> str:
    """Returns the URL whose POST ends a subscription, with any body (RFC 8058)."""
    return f"{base}/api/v1/public/subscriptions/{token}"


def confirm_letter(uid: str, to: str, page_title: str, base: str, token: str) -> SubscriberMail:
    return SubscriberMail(
        uid=uid,
        to=to,
        subject=phrase("mail.subject", title=page_title),
        paragraphs=(
            phrase("mail.asked", title=page_title),
            phrase("mail.confirm"),
        ),
        link=confirm_address(base, token),
        link_text=phrase("confirm.button"),
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
        link_text=_link_text(notice),
        thread=f"{notice.incident}.{page.slug}",
        leave=one_click_address(page.base, token),
        leave_page=leave_address(page.base, token),
    )


def notice_subject(page_title: str, title: str) -> str:
    """Returns the subject. It is constant per incident, as mail programs group threads by it."""
    return f"{page_title}: {title}"


def notice_paragraphs(notice: SubscriberNotice) -> tuple[str, ...]:
    about = phrase("affects", names=listed(notice.components)) if notice.components else ""
    if notice.step is not None and notice.ends_at is not None:
        word = phrase(f"step.{notice.step.value}")
        when = phrase(
            "mail.when", **{"from": exactly(notice.started_at), "to": exactly(notice.ends_at)}
        )
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


def _link_text(notice: SubscriberNotice) -> str:
    return phrase("mail.incident" if notice.step is None else "mail.page")


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
        title=phrase("chat.subject", title=page_title),
        paragraphs=(
            phrase("chat.asked", title=page_title),
            phrase("chat.confirm"),
        ),
        links=((confirm_address(base, token), phrase("confirm.button")),),
    )


def notice_chat(
    page_title: str, notice: SubscriberNotice, page: Addresses, token: str
) -> ChatMessage:
    return ChatMessage(
        title=notice_subject(page_title, notice.title),
        paragraphs=notice_paragraphs(notice),
        links=(
            (_link_of(notice, page), _link_text(notice)),
            (leave_address(page.base, token), phrase("leave.button")),
        ),
    )


def _page_link(title: str, page: Addresses) -> dict[str, str]:
    return {"title": title, "url": page.page}
