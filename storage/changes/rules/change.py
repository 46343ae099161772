"""Rules of change records, which pipelines send phase by phase.

Invariants: a change starts at most once and ends at most once, in this order. A repeated record has
no effect; a contradicting one is refused with its field. An absent field contradicts no value.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from unicodedata import normalize
from uuid import UUID

from ....probes.check.target import BadTarget, read_url
from ...core.instant import DAY, MILLISECOND, MINUTE, Instant
from ...core.naming import text_rule_broken

EXTERNAL_ID_LONGEST: Final = 128
REF_LONGEST: Final = 128
URL_LONGEST: Final = 512
# The clock of a pipeline can be ahead. Older records are of no use for incidents.
AHEAD_MOST_US: Final = 5 * MINUTE
BACK_MOST_US: Final = 31 * DAY

SOURCE_PATTERN: Final = "^[a-z0-9][a-z0-9-]{0,63}$"
_SOURCE: Final = re.compile(SOURCE_PATTERN, re.ASCII)


class ChangeKind(StrEnum):
    DEPLOY = "deploy"
    ROLLBACK = "rollback"
    FLAG = "flag"


class ChangePhaseName(StrEnum):
    """Phase of a change. All phases except `started` end it."""

    STARTED = "started"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Code(StrEnum):
    """Reason why a record is refused; the value is the API code."""

    KIND_INVALID = "kind_invalid"
    PHASE_INVALID = "phase_invalid"
    SOURCE_INVALID = "source_invalid"
    EXTERNAL_ID_INVALID = "external_id_invalid"
    REF_INVALID = "ref_invalid"
    URL_INVALID = "url_invalid"
    OUT_OF_BOUNDS = "occurred_at_out_of_bounds"
    BEFORE_START = "occurred_at_before_start"
    DECISION_UNKNOWN = "decision_unknown"
    KIND_MISMATCH = "kind_mismatch"
    PHASE_ORDER = "phase_order"
    PHASE_EXISTS = "phase_exists"


@dataclass(frozen=True, slots=True)
class ChangeFault:
    code: Code
    field: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    source: str
    external_id: str
    ref: str | None = None
    url: str | None = None
    occurred_at: Instant | None = None
    decision: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDraft(_Given):
    """Record as sent; None for an absent field."""

    kind: str
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(_Given):
    """Valid draft with normalized texts; None for an absent field.

    Instants are whole ms, as in the API, so that a client can repeat what the API returned.
    """

    kind: ChangeKind
    phase: ChangePhaseName


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPhase:
    """Stored phase of a change."""

    phase: ChangePhaseName
    occurred_at: Instant
    ref: str
    url: str
    decision: UUID | None


@dataclass(frozen=True, slots=True)
class Replay:
    """The phase is stored already and no given field contradicts it."""


def read(draft: ChangeDraft) -> Record | ChangeFault:
    """Returns the record to store, or the first fault of the draft."""
    source, external_id = kept(draft.source), kept(draft.external_id)
    ref = None if draft.ref is None else kept(draft.ref)
    url = None if draft.url is None else kept(draft.url)
    judged = (
        (Code.KIND_INVALID, "kind", kind_rule_broken(draft.kind)),
        (Code.PHASE_INVALID, "phase", _one_of(ChangePhaseName, draft.phase)),
        (Code.SOURCE_INVALID, "source", source_rule_broken(source)),
        (Code.EXTERNAL_ID_INVALID, "external_id", external_id_rule_broken(external_id)),
        (Code.REF_INVALID, "ref", None if ref is None else _text_broken(ref, REF_LONGEST)),
        (Code.URL_INVALID, "url", None if url is None else _url_broken(url)),
    )
    for code, field, rule in judged:
        if rule is not None:
            return ChangeFault(code, field, rule)
    return Record(
        kind=ChangeKind(draft.kind),
        phase=ChangePhaseName(draft.phase),
        source=source,
        external_id=external_id,
        ref=ref,
        url=url,
        occurred_at=None if draft.occurred_at is None else _is_whole(draft.occurred_at),
        decision=draft.decision,
    )


def follow(
    kind: ChangeKind | None, known: Sequence[RecordedPhase], record: Record, now: Instant
) -> RecordedPhase | Replay | ChangeFault:
    """Returns the phase to store, `Replay` for a stored one, or the fault.

    Does not check that the decision belongs to the service.

    Args:
        kind: stored kind, None for a new change.
        known: stored phases, empty for a new change.
    """
    if kind is not None and kind is not record.kind:
        return ChangeFault(Code.KIND_MISMATCH)
    same = next((each for each in known if each.phase is record.phase), None)
    if same is not None:
        field = _contradicted(same, record)
        return Replay() if field is None else ChangeFault(Code.PHASE_EXISTS, field)
    at = occurred_at(record, now)
    if not now - BACK_MOST_US <= at <= now + AHEAD_MOST_US:
        rule = "must be at most 31 days back and 5 minutes ahead"
        return ChangeFault(Code.OUT_OF_BOUNDS, "occurred_at", rule)
    if any(each.phase is not ChangePhaseName.STARTED for each in known):
        return ChangeFault(Code.PHASE_ORDER)
    if any(at < each.occurred_at for each in known):
        return ChangeFault(
            Code.BEFORE_START, "occurred_at", "must not be before the change started"
        )
    return RecordedPhase(
        phase=record.phase,
        occurred_at=at,
        ref=record.ref or "",
        url=record.url or "",
        decision=record.decision,
    )


def occurred_at(record: Record, now: Instant) -> Instant:
    """Returns the given instant, or `now`."""
    return _is_whole(now) if record.occurred_at is None else record.occurred_at


def _contradicted(known: RecordedPhase, record: Record) -> str | None:
    """Returns the first given field that differs from the stored phase."""
    pairs = (
        ("occurred_at", known.occurred_at, record.occurred_at),
        ("ref", known.ref, record.ref),
        ("url", known.url, record.url),
        ("decision_id", known.decision, record.decision),
    )
    for field, ours, theirs in pairs:
        if theirs is not None and theirs != ours:
            return field
    return None


def last_recorded(texts: Sequence[str]) -> str:
    """Returns the last non-empty text of the phases in order."""
    return next((text for text in reversed(texts) if text), "")


def kept(text: str) -> str:
    """Returns the stripped text in Unicode normal form C (NFC)."""
    return normalize("NFC", text.strip())


def kind_rule_broken(text: str) -> str | None:
    return _one_of(ChangeKind, text)


def source_rule_broken(text: str) -> str | None:
    """Returns the rule that a normalized source breaks, None if it is valid."""
    return None if _SOURCE.fullmatch(text) else f"must match {SOURCE_PATTERN}"


def external_id_rule_broken(text: str) -> str | None:
    """Returns the rule that a normalized external id breaks, None if it is valid."""
    if not text:
        return f"must be 1 to {EXTERNAL_ID_LONGEST} characters"
    return _text_broken(text, EXTERNAL_ID_LONGEST)


def _text_broken(text: str, longest: int) -> str | None:
    if len(text) > longest:
        return f"must be at most {longest} characters"
    return text_rule_broken(text)


def _url_broken(text: str) -> str | None:
    if len(text) > URL_LONGEST:
        return f"must be at most {URL_LONGEST} characters"
    try:
        read_url(text, ("https",))
    except BadTarget:
        return "must be an https URL with a host, without a user name or password"
    return None


def _one_of(words: type[StrEnum], text: str) -> str | None:
    known = [word.value for word in words]
    return None if text in known else f"must be one of {', '.join(known)}"


def _is_whole(instant: Instant) -> Instant:
    return Instant(instant - instant % MILLISECOND)
