"""Routes of the global mute, which global admins set."""

from typing import Final

from msgspec import UNSET

from ....storage.core.instant import Instant
from ....storage.notifications.queries.global_silence import select_global_silence
from ....storage.notifications.rules.global_silence import NO_SILENCE
from ....storage.notifications.rules.global_silence import GlobalSilence as Silence
from ....storage.notifications.transactions.put_global_silence import EDIT, put_global_silence
from ...wire.route import Request, setting_routes
from ...wire.schema import instant_text
from ...wire.time_params import instant_given
from ..schemas.mute import Alerting, GlobalSilence, PutAlerting

_OWN: Final = "/api/v1/settings/alerting"


async def read(ask: Request) -> Alerting:
    async with ask.context.pool.transaction("read_alerting", read_only=True) as tx:
        found = await select_global_silence(tx)
        return _alerting_json(found, tx.now)


async def put(ask: Request) -> Alerting:
    silence = _silence_of(ask.body)
    async with ask.context.pool.transaction("put_alerting") as tx:
        stored = await put_global_silence(tx, ask.who, silence)
        now = tx.now
    return _alerting_json(stored, now)


def _silence_of(body: PutAlerting) -> Silence:
    given = body.global_silence
    if given is UNSET:
        return NO_SILENCE
    until = None
    if given.until is not UNSET:
        until = instant_given("global_silence.until", given.until)
    # A mute that is lifted has no reason.
    # Line breaks would divide the banner and the entry of the audit log.
    text = given.reason if given.enabled and given.reason is not UNSET else ""
    reason = " ".join(text.split())
    return Silence(enabled=given.enabled, until=until, reason=reason)


def _alerting_json(found: Silence | None, now: Instant) -> Alerting:
    silence = found or NO_SILENCE
    in_force = silence.is_in_force(now)
    return Alerting(
        configured=found is not None,
        global_silence=GlobalSilence(
            enabled=in_force,
            until=instant_text(silence.until),
            reason=silence.reason if in_force and silence.reason else UNSET,
            muted_by=silence.by if in_force and silence.by else UNSET,
            muted_at=instant_text(silence.set_at if in_force else None),
        ),
    )


ROUTES: Final = setting_routes(
    _OWN,
    read,
    put,
    EDIT,
    tag="alerting",
    body=PutAlerting,
    answer=Alerting,
    summaries=(
        "Read the global mute.",
        "Mute all alerts, or unmute them.",
    ),
)
