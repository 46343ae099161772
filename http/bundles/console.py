"""Bundle screen: export of a project's monitors and services, and changes by a bundle.

The screen shows the plan of a bundle before it is applied.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...storage.accounts.rules.access import Rank, rank_in
from ...storage.bundles.queries import select_files
from ...storage.bundles.rows import FileRow
from ...storage.bundles.rules.bundle import Bundle, read_bundle
from ...storage.bundles.rules.bundle_diff import BundleAction, BundleChange, FieldChange
from ...storage.bundles.rules.bundle_yaml import BadText, Text, read_text, write_text
from ...storage.bundles.transactions.apply_bundle import APPLY
from ...storage.bundles.transactions.export_bundle import EXPORT, export_bundle
from ...storage.core.instant import Instant
from ...storage.core.refusal import Refused
from ..ui.form_routes import page_route
from ..ui.form_values import value_of
from ..ui.formatting import Moment, count, moment
from ..ui.page_layout import frame_of
from ..ui.render import page
from ..wire.errors import Problem
from ..wire.route import Request, Response, Route
from .routes.bundles import apply_of, aside, plan_of

FORM_BYTES_MOST: Final = 1 << 20
# Changes of a plan that are shown; the command line prints all.
CHANGES_MOST: Final = 500
FIELDS_MOST: Final = 50
VALUE_LONGEST: Final = 160
_WORDS: Final = {
    BundleAction.CREATE: ("+", "new"),
    BundleAction.UPDATE: ("~", "changed"),
    BundleAction.ORPHAN: ("−", "disabled"),
}


@dataclass(frozen=True, slots=True)
class FieldChangeItem:
    """Change of a field. `before` or `after` is None if the field is absent there."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class ChangePlanItem:
    sign: str
    act: str
    kind: str
    uid: str
    fields: list[FieldChangeItem]


@dataclass(frozen=True, slots=True)
class BundlePreview:
    """A plan, or the result of applying one."""

    is_applied: bool
    first: str
    lines: list[ChangePlanItem]
    more: int


@dataclass(frozen=True, slots=True)
class BundleFileItem:
    provider: str
    path: str
    status: str
    error: str
    applied: Moment | None


async def render_bundle(ask: Request) -> Response:
    return await _render(ask)


async def submit_bundle(ask: Request) -> Response:
    # A browser sends CRLF line breaks.
    typed = value_of(ask, "bundle").replace("\r\n", "\n")
    verb = value_of(ask, "act")
    if verb not in ("plan", "apply"):
        raise Problem("Unknown action")
    try:
        text = await aside(ask, lambda: read_text(typed))
    except BadText as why:
        return await _render(ask, typed=typed, error=f"{_sentence(why)}.")
    try:
        bundle = await aside(ask, lambda: read_bundle(text.document))
        shown = await _done(ask, verb, bundle)
    except Refused as why:
        if why.code in ("forbidden", "not_found"):
            raise
        return await _render(ask, typed=typed, error=_pointed_at(text, why))
    return await _render(ask, typed=None if shown.is_applied else typed, shown=shown)


async def _done(ask: Request, verb: str, bundle: Bundle) -> BundlePreview:
    found = await (apply_of if verb == "apply" else plan_of)(ask, bundle)
    return _shown(found.changes, is_applied=found.applied)


def _pointed_at(text: Text, why: Refused) -> str:
    return f"{_sentence(text.place_of(why.field))}: {why}."


def _sentence(said: object) -> str:
    text = str(said)
    return text[:1].upper() + text[1:]


def _shown(changes: Sequence[BundleChange], *, is_applied: bool) -> BundlePreview:
    counts = Counter(one.action for one in changes)
    parts = [f"{counts[act]} {word}" for act, (_, word) in _WORDS.items() if counts[act]]
    first = f"{'Applied' if is_applied else 'If applied'}: {', '.join(parts) or 'no changes'}"
    told = [one for one in changes if one.action in _WORDS or one.fields]
    lines = [_item(one) for one in told[:CHANGES_MOST]]
    return BundlePreview(is_applied, f"{first}.", lines, len(told) - len(lines))


def _item(change: BundleChange) -> ChangePlanItem:
    sign = _WORDS[change.action][0] if change.action in _WORDS else "="
    fields = [] if change.action is BundleAction.CREATE else change.fields[:FIELDS_MOST]
    return ChangePlanItem(
        sign, change.action.value, change.kind, change.uid, [_field(one) for one in fields]
    )


def _field(field: FieldChange) -> FieldChangeItem:
    return FieldChangeItem(field.name, _value(field.from_), _value(field.to))


def _value(value: Any) -> str | None:
    if value is msgspec.UNSET:
        return None
    text = value if isinstance(value, str) and value else msgspec.json.encode(value).decode()
    return text if len(text) <= VALUE_LONGEST else f"{text[:VALUE_LONGEST]}…"


async def _render(
    ask: Request, *, typed: str | None = None, shown: BundlePreview | None = None, error: str = ""
) -> Response:
    async with ask.context.pool.transaction("console_bundle", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        project = frame.place.uid
        document = await export_bundle(tx, ask.who, project, ask.context.keyring)
        files = [row for row in await select_files(tx) if row.project == project]
        now = tx.now
    assert ask.scope is not None
    text = await aside(ask, lambda: write_text(document)) if typed is None else typed
    return page(
        "bundles/console.html",
        status=400 if error else 200,
        frame=frame,
        first=_summary(document),
        text=text,
        is_typed=typed is not None,
        shown=shown,
        error=error,
        files=[_file(row, now) for row in files],
        may_apply=rank_in(ask.who, ask.scope) >= Rank.PROJECT_ADMIN,
    )


def _summary(document: dict[str, Any]) -> str:
    said = count(len(document["monitors"]), "monitor")
    services = document.get("services")
    also = f" and {count(len(services), 'service')}" if services else ""
    return f"{said}{also} as a bundle"


def _file(row: FileRow, now: Instant) -> BundleFileItem:
    applied = None if row.applied_at is None else moment(row.applied_at, now)
    return BundleFileItem(row.provider, row.path, row.status, row.last_error, applied)


_PATH: Final = "/projects/{projectID}/bundle"
_PROJECT: Final = ("project", "projectID")

ROUTES: Final = (
    page_route(
        method="GET",
        path=_PATH,
        action=EXPORT,
        scope=_PROJECT,
        handler=render_bundle,
        summary="Bundle of a project.",
    ),
    Route(
        method="POST",
        path=_PATH,
        action=APPLY,
        scope=_PROJECT,
        handler=submit_bundle,
        summary="Plan or apply a bundle.",
        form=True,
        form_largest=FORM_BYTES_MOST,
        page=True,
        in_document=False,
    ),
)
