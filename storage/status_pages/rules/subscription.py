"""Rules of subscriptions to a status page, and the content of notices.

An address may belong to another person than the requester. Until its owner confirms, only the
confirmation request is sent, at most once per MAIL_PAUSE_US.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

import msgspec

from ...core.instant import HOUR, MINUTE, Instant
from ...incidents.rules.incident import IncidentImpact, IncidentStatus
from .maintenance_step import MaintenanceStep
from .status_page import Audience, Incident, PageFrame, affected_names, shown_incidents

CONFIRM_US: Final = 24 * HOUR
MAIL_PAUSE_US: Final = 10 * MINUTE
# Consecutive permanent refusals after which an address is suspended until it is confirmed again.
BOUNCES_MOST: Final = 3
SUBSCRIBERS_OF_PAGE_MOST: Final = 20_000
# Limit of undelivered requests to webhooks per page. A visitor can name any number of webhooks.
WEBHOOKS_ASKED_MOST: Final = 50
COMPONENTS_CHOSEN_MOST: Final = 200
ADDRESS_LONGEST: Final = 254
URL_LONGEST: Final = 2_000
# Subscribers per transaction.
TOLD_AT_ONCE: Final = 500

CONFIRM_EVENT: Final = "subscription.confirm"

_LOCAL: Final = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-/=?^_`{|}~."
)
_DOMAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-.")


class SubscriberKind(StrEnum):
    MAIL = "mail"
    WEBHOOK = "webhook"
    # Incoming webhooks of chat channels. A member of the channel confirms by a link.
    SLACK = "slack"
    TEAMS = "teams"


CHATS: Final = frozenset({SubscriberKind.SLACK, SubscriberKind.TEAMS})


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRequest:
    """Requested subscription. `components` None is the whole page, with future components."""

    kind: SubscriberKind
    address: str
    components: frozenset[UUID] | None = None
    # Language of the form; None if the request had none.
    language: str | None = None


class SubscriberNotice(msgspec.Struct, frozen=True, kw_only=True):
    """Public update of an incident as the page shows it.

    A note has no status. A step of a maintenance has `step` and `ends_at`, its id in place of that
    of the incident, and its start as `started_at`. `components` are the affected component names,
    empty if the incident has no source.
    """

    incident: UUID
    seq: int
    title: str
    status: IncidentStatus | None
    impact: IncidentImpact
    body: str
    at: Instant
    started_at: Instant
    components: tuple[str, ...]
    step: MaintenanceStep | None = None
    ends_at: Instant | None = None


def asked_faults(asked: SubscriptionRequest) -> list[tuple[str, str]]:
    """Returns the faulty fields with their faults."""
    faults = []
    if asked.kind is SubscriberKind.MAIL and not is_mail_address(asked.address):
        faults.append(("email", "is not an e-mail address"))
    if asked.kind is not SubscriberKind.MAIL and not is_public_url(asked.address):
        faults.append(("url", "must be an https URL, without user and password"))
    if asked.components is not None and not asked.components:
        faults.append(("components", "must name a component, or be left out"))
    elif asked.components is not None and len(asked.components) > COMPONENTS_CHOSEN_MOST:
        faults.append(("components", f"must be at most {COMPONENTS_CHOSEN_MOST}"))
    return faults


def is_mail_address(text: str) -> bool:
    """Returns whether all mail servers accept the address.

    It needs a dotted ASCII domain and a local part without quotes (RFC 5321, 4.1.2).
    """
    local, _, domain = text.rpartition("@")
    labels = domain.lower().split(".")
    return (
        len(text) <= ADDRESS_LONGEST
        and 0 < len(local) <= 64
        and set(local) <= _LOCAL
        and all(local.split("."))
        and len(labels) >= 2
        and set(domain.lower()) <= _DOMAIN
        and all(0 < len(label) <= 63 and label.strip("-") == label for label in labels)
    )


def is_public_url(text: str) -> bool:
    """Returns whether the URL is well formed. Its address is checked when it is dialled."""
    if len(text) > URL_LONGEST or not text.isascii() or any(c <= " " or c == "\x7f" for c in text):
        return False
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    has_user = parts.username is not None or parts.password is not None
    return parts.scheme == "https" and bool(parts.hostname) and not has_user and port != 0


def address_key(kind: SubscriberKind, address: str) -> str:
    """Returns the key of an address. Mail addresses ignore case, as common servers do."""
    return address.lower() if kind is SubscriberKind.MAIL else address


def shown_address(kind: str, address: str) -> str:
    """Returns an address as people see it. The URL of a chat is shown by its host and its end,
    because anyone who has it can post to the channel.
    """
    if kind not in CHATS:
        return address
    return f"{urlsplit(address).hostname}/…{address[-4:]}"


def address_hash(kind: SubscriberKind, address: str) -> bytes:
    """Returns the hash of an address, which is stored without consent of its owner."""
    return sha256(f"{kind} {address_key(kind, address)}".encode()).digest()


def notice_of(frame: PageFrame, incident: Incident, seq: int) -> SubscriberNotice | None:
    """Returns the public notice of an update, None if the public sees no such update."""
    shown = shown_incidents(frame, [incident], Audience.PUBLIC)
    updates = [one for one in shown[0].updates if one.seq == seq] if shown else []
    if not updates:
        return None
    return SubscriberNotice(
        incident=incident.uid,
        seq=seq,
        title=shown[0].title,
        status=updates[0].status,
        impact=shown[0].impact,
        body=updates[0].body,
        at=updates[0].created_at,
        started_at=shown[0].started_at,
        components=tuple(affected_names(frame, incident)),
    )


def concerned(frame: PageFrame, uids: Sequence[UUID], incident: Incident) -> frozenset[UUID]:
    """Returns the page's components that the incident affects.

    `uids` are those of the components, in the order of the frame. Without a source, an incident
    affects all of them.
    """
    about = _about(incident)
    if not about and not incident.components:
        return frozenset(uids)
    pairs = zip(frame.components, uids, strict=True)
    return frozenset(
        uid for named, uid in pairs if named.anchor in about or uid in incident.components
    )


def wants(chosen: Collection[UUID] | None, concerned: Collection[UUID]) -> bool:
    """Returns whether a subscriber of `chosen` components receives an update on `concerned`."""
    return chosen is None or any(uid in concerned for uid in chosen)


def _about(incident: Incident) -> set[UUID]:
    return {one for one in (incident.monitor, incident.service) if one is not None}
