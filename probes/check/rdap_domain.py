"""Domain object of an RDAP server (RFC 9083, 5.3): expiry, registrar and statuses. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, cast

import msgspec

REGISTRAR_LONGEST: Final = 200
STATUSES_MOST: Final = 50
STATUS_LONGEST: Final = 100

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
# First and last instant that UTC can state. An offset can lead beyond them.
_FIRST_US: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST_US: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_RDAP: Final = "application/rdap+json"


class NotADomain(ValueError):
    """Raised for a document that does not describe the domain. The text repeats no part of it."""


@dataclass(frozen=True, slots=True)
class DomainFacts:
    """`expires_at` is µs since the epoch, None if the document does not state it."""

    expires_at: int | None
    registrar: str | None
    statuses: tuple[str, ...]

    @property
    def body(self) -> str:
        """Returns the facts as JSON, for conditions."""
        expires_at = self.expires_at
        text = None
        if expires_at is not None:
            text = (_EPOCH + timedelta(microseconds=expires_at)).isoformat()
        facts = {"expires_at": text, "registrar": self.registrar, "statuses": self.statuses}
        return msgspec.json.encode(facts).decode()


def read_domain(body: bytes, domain: str) -> DomainFacts:
    """Returns the facts of a document. Of several instants of expiry, the first counts.

    Raises: `NotADomain` if it is another object, or the object of another domain.
    """
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise NotADomain("is not JSON") from None
    if not isinstance(document, dict) or document.get("objectClassName") != "domain":
        raise NotADomain("is another object")
    found = cast("dict[str, Any]", document)
    name = found.get("ldhName")
    if not isinstance(name, str) or name.rstrip(".").lower() != domain:
        raise NotADomain("is of another domain")
    ends = [at for at in _expirations(found) if at is not None]
    statuses = {s[:STATUS_LONGEST] for s in _list(found.get("status")) if isinstance(s, str)}
    return DomainFacts(
        expires_at=min(ends, default=None),
        registrar=next(_registrars(found), None),
        statuses=tuple(sorted(statuses)[:STATUSES_MOST]),
    )


def is_unregistered(body: bytes, content_type: str) -> bool:
    """Returns whether a response 404 is that of an RDAP server (RFC 9083, 6).

    Any other server, such as a portal, can answer 404 in JSON.
    """
    if content_type.partition(";")[0].strip().lower() == _RDAP:
        return True
    try:
        document = msgspec.json.decode(body)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return (
        isinstance(document, dict)
        and document.get("errorCode") == 404
        and isinstance(document.get("rdapConformance"), list)
    )


def _expirations(found: dict[str, Any]) -> Iterator[int | None]:
    for event in _list(found.get("events")):
        if isinstance(event, dict) and event.get("eventAction") == "expiration":
            yield _instant(event.get("eventDate"))


def _instant(text: object) -> int | None:
    try:
        at = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    if at is None or at.tzinfo is None:
        return None
    return min(max((at - _EPOCH) // _MICROSECOND, _FIRST_US), _LAST_US)


def _registrars(found: dict[str, Any]) -> Iterator[str]:
    for entity in _list(found.get("entities")):
        if not isinstance(entity, dict) or "registrar" not in _list(entity.get("roles")):
            continue
        card = _list(entity.get("vcardArray"))
        for field in _list(card[1]) if len(card) > 1 else ():
            parts = _list(field)
            if len(parts) == 4 and parts[0] == "fn" and isinstance(parts[3], str) and parts[3]:
                yield parts[3][:REGISTRAR_LONGEST]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
