"""Cover requests on the on-call screen: their lines, and the form."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID
from zoneinfo import ZoneInfo

from ....storage.core.instant import Instant
from ....storage.oncall.rows import CoverRequestRow
from ....storage.services.queries.pickable_objects import PickableKind
from ...ui.form_values import stripped, value_of
from ...ui.pickers.objects import resolved
from ...ui.time_inputs import instant_typed
from ...wire.route import Request
from ...wire.scope_keys import org_of, project_of
from ..schemas import CreateCoverRequest
from .oncall_weeks import plot_text

# Inputs of the form, by the field of a refusal.
COVER_FIELDS: Final = {
    "starts_at": "cover-from",
    "ends_at": "cover-to",
    "return_starts_at": "cover-back-from",
    "return_ends_at": "cover-back-to",
    "wanted_id": "cover-wanted",
    "channel_id": "cover-who",
    "note": "cover-note",
}
COVER_LABELS: Final = {
    "starts_at": "From",
    "ends_at": "To",
    "return_starts_at": "In return from",
    "return_ends_at": "In return to",
    "wanted_id": "Person to ask",
    "channel_id": "Duty of",
    "note": "Note",
}
COVER_WORDS: Final = {
    "cover_quota": "Limit: 50 open cover requests per schedule.",
    "cover_accepted": "Another person has accepted this request.",
    "cover_outdated": "The duties have changed since the request, so it cannot be accepted.",
}


@dataclass(frozen=True, slots=True)
class CoverItem:
    """`may_accept`: the request is open, and the person who looks at it may take it over."""

    uid: UUID
    who: str
    span: str
    asks: str
    returned: str
    note: str
    accepted_by: str
    may_accept: bool

    @property
    def is_open(self) -> bool:
        return not self.accepted_by


def cover_items(
    rows: list[CoverRequestRow], viewer: object, zone: ZoneInfo, now: Instant, *, takes_any: bool
) -> list[CoverItem]:
    """Returns the lines of requests.

    Args:
        takes_any: the viewer is a participant or an editor, who may accept what names nobody.
    """
    return [_item(row, viewer, zone, now, takes_any=takes_any) for row in rows]


async def cover_given(ask: Request, zone: ZoneInfo) -> CreateCoverRequest:
    """Returns the body of the form. Raises: Refused invalid."""
    who, wanted = [
        await chosen_uid(ask, PickableKind.PERSON, COVER_FIELDS[field], field)
        for field in ("channel_id", "wanted_id")
    ]
    back = {
        name: stripped(ask, COVER_FIELDS[name]) for name in ("return_starts_at", "return_ends_at")
    }
    return CreateCoverRequest(
        channel_id=who,
        wanted_id=wanted,
        starts_at=instant_typed("starts_at", stripped(ask, "cover-from"), zone),
        ends_at=instant_typed("ends_at", stripped(ask, "cover-to"), zone),
        note=stripped(ask, "cover-note"),
        **{name: instant_typed(name, text, zone) for name, text in back.items() if text},
    )


async def chosen_uid(ask: Request, kind: PickableKind, name: str, field: str) -> str:
    """Returns the id of the object that an input names, empty for an empty input.

    Raises: Refused invalid with `field`, if the text names no object or several.
    """
    text, was = stripped(ask, name), value_of(ask, f"{name}_was")
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        one = await resolved(tx, org_of(ask), project_of(ask), kind, text, was, field)
    return "" if one is None else str(one.uid)


def _item(
    row: CoverRequestRow, viewer: object, zone: ZoneInfo, now: Instant, *, takes_any: bool
) -> CoverItem:
    returned = ""
    if row.return_starts_at is not None and row.return_ends_at is not None:
        span = _span(row.return_starts_at, row.return_ends_at, zone, now)
        returned = f"In return for {span}"
    is_open = row.accepted_at is None
    return CoverItem(
        row.uid,
        row.channel_name,
        _span(row.starts_at, row.ends_at, zone, now),
        row.wanted_name or "everybody",
        returned,
        row.note,
        "" if is_open else row.accepted_by_name or "a former member",
        is_open
        and viewer != row.channel_uid
        and (takes_any if row.wanted_uid is None else row.wanted_uid == viewer),
    )


def _span(starts_at: Instant, ends_at: Instant, zone: ZoneInfo, now: Instant) -> str:
    return f"{plot_text(starts_at, zone, now)} to {plot_text(ends_at, zone, now)}"
