"""Form of the global mute. It covers the installation and belongs to no project."""

from dataclasses import replace
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from msgspec import UNSET

from ....storage.core.instant import DAY, Instant, from_text
from ....storage.core.refusal import Refused
from ....storage.notifications.rules.global_silence import LONGEST_US
from ...ui.form_routes import admin_route
from ...ui.form_values import stripped
from ...ui.formatting import dated
from ...ui.render import page, redirect
from ...ui.time_inputs import instant_typed, spelt_local
from ...wire.route import Request, Response, Route
from ..routes import global_silence as api
from ..schemas.mute import Alerting, GlobalSilenceRequest, PutAlerting

PATH: Final = "/admin/silence"
_ZONE: Final = ZoneInfo("UTC")


class MuteQuery(msgspec.Struct, frozen=True):
    """`saved` is set after a save."""

    saved: str = ""


async def render_global_silence(ask: Request) -> Response:
    return _render(await api.read(ask), ask.context.clock(), saved=bool(ask.query.saved))


async def submit_global_silence(ask: Request) -> Response:
    """Saves the setting. A refused form keeps its submitted value."""
    until = stripped(ask, "until")
    try:
        given = GlobalSilenceRequest()
        if stripped(ask, "act") != "lift":
            given = GlobalSilenceRequest(
                enabled=True,
                until=instant_typed("until", until, _ZONE) if until else UNSET,
            )
        await api.put(replace(ask, body=PutAlerting(global_silence=given)))
    except Refused as refused:
        if refused.code == "forbidden":
            raise
        said = f"End: {refused.message}."
        return _render(
            await api.read(ask), ask.context.clock(), typed=until, wrong=said, status=400
        )
    return redirect(f"{PATH}?saved=yes")


def _render(
    found: Alerting,
    now: Instant,
    *,
    typed: str | None = None,
    wrong: str = "",
    saved: bool = False,
    status: int = 200,
) -> Response:
    silence = found.global_silence
    until = None if silence.until is UNSET else from_text(silence.until)
    if typed is None:
        typed = spelt_local(until, _ZONE) if silence.enabled and until is not None else ""
    return page(
        "notifications/console/global_silence.html",
        status=status,
        path=PATH,
        in_force=silence.enabled,
        until="" if until is None else dated(until, now),
        typed=typed,
        wrong=wrong,
        saved=saved,
        longest_days=LONGEST_US // DAY,
    )


ROUTES: Final[tuple[Route, ...]] = (
    admin_route("GET", PATH, render_global_silence, "The global mute.", MuteQuery),
    admin_route("POST", PATH, submit_global_silence, "Silences all alerts, or lifts that."),
)
