"""Form of the global mute. It covers the installation and belongs to no project."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from ....storage.core.instant import DAY, SECOND, Instant, from_text, to_text
from ....storage.core.refusal import Refused
from ....storage.notifications.rules.global_silence import LONGEST_US, REASON_LONGEST
from ....storage.notifications.transactions.put_global_silence import EDIT
from ...ui.form_routes import form_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import dated
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...ui.shown_time import zone_shown
from ...ui.time_inputs import instant_typed, spelt_local
from ...wire.route import Request, Response, Route
from ..routes import global_silence as api
from ..schemas.mute import Alerting, GlobalSilenceRequest, PutAlerting

PATH: Final = "/admin/silence"
# Durations in seconds, with their words.
PRESETS: Final = {"1800": "30 minutes", "7200": "2 hours", "28800": "8 hours"}
_AT_A_TIME: Final = "time"
_UNTIL_UNMUTED: Final = "unmuted"


@dataclass(frozen=True, slots=True)
class MuteForm:
    """Values of the form: the chosen duration, the time of `time`, and the reason.

    `faulty` is the field of a refused form.
    """

    choice: str
    until: str
    reason: str = ""
    faulty: str = ""


class MuteQuery(msgspec.Struct, frozen=True):
    """`saved` is set after a save."""

    saved: str = ""


async def render_global_silence(ask: Request) -> Response:
    return await _render(ask, await api.read(ask), saved=bool(ask.query.saved))


async def submit_global_silence(ask: Request) -> Response:
    """Saves the setting. A duration starts at the submission. A refused form keeps its values."""
    try:
        given = GlobalSilenceRequest()
        if stripped(ask, "act") != "lift":
            until = await _end_of(ask)
            given = GlobalSilenceRequest(enabled=True, until=until, reason=_reason_of(ask))
        await api.put(replace(ask, body=PutAlerting(global_silence=given)))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        faulty = refused.field.rpartition(".")[2]
        said = f"{'Reason' if faulty == 'reason' else 'End'}: {refused.message}."
        typed = MuteForm(
            value_of(ask, "for"), stripped(ask, "until"), stripped(ask, "reason"), faulty
        )
        return await _render(ask, await api.read(ask), typed=typed, wrong=said, status=400)
    return redirect(f"{PATH}?saved=yes")


def _reason_of(ask: Request) -> str:
    """Returns the reason, which the form requires: every user sees it in the banner."""
    reason = stripped(ask, "reason")
    if not reason:
        raise Refused("invalid", "reason", "must not be empty")
    return reason


async def _end_of(ask: Request) -> str | UnsetType:
    """Returns the end of the form, UNSET for a mute that lasts until it is lifted."""
    choice = value_of(ask, "for")
    if choice == _UNTIL_UNMUTED:
        return UNSET
    if choice == _AT_A_TIME:
        silence = (await api.read(ask)).global_silence
        present = None if silence.until is UNSET else from_text(silence.until)
        return instant_typed("until", stripped(ask, "until"), zone_shown(), present)
    if choice not in PRESETS:
        raise Refused("invalid", "for", "choose one of the durations")
    return to_text(Instant(ask.context.clock() + int(choice) * SECOND))


async def _render(
    ask: Request,
    found: Alerting,
    *,
    typed: MuteForm | None = None,
    wrong: str = "",
    saved: bool = False,
    status: int = 200,
) -> Response:
    now = ask.context.clock()
    silence = found.global_silence
    until = None if silence.until is UNSET else from_text(silence.until)
    if typed is None and silence.enabled:
        choice = _UNTIL_UNMUTED if until is None else _AT_A_TIME
        end = "" if until is None else spelt_local(until, zone_shown())
        typed = MuteForm(choice, end, silence.reason or "")
    return page(
        "notifications/console/global_silence.html",
        frame=await outer_frame_of(ask),
        status=status,
        path=PATH,
        in_force=silence.enabled,
        until="" if until is None else dated(until, now),
        typed=typed or MuteForm(next(iter(PRESETS)), ""),
        presets=[
            (value, words, dated(Instant(now + int(value) * SECOND), now))
            for value, words in PRESETS.items()
        ],
        wrong=wrong,
        author=silence.muted_by or "",
        muted_at="" if silence.muted_at is UNSET else dated(from_text(silence.muted_at), now),
        reason=silence.reason or "",
        reason_longest=REASON_LONGEST,
        saved=saved,
        longest_days=LONGEST_US // DAY,
    )


_route: Final = partial(form_route, action=EDIT)

ROUTES: Final[tuple[Route, ...]] = (
    _route("GET", PATH, None, render_global_silence, "The global mute.", MuteQuery),
    _route("POST", PATH, None, submit_global_silence, "Mute all alerts, or unmute them."),
)
