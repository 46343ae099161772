"""Push heartbeats: requests of targets. Each is committed before the response."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import msgspec
import trio
from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused, Unavailable
from ....storage.core.slug import is_slug
from ....storage.core.token import TokenKind, digest, kind_of
from ....storage.engine.keyring import Keyring
from ....storage.engine.lock_refusal import refused_when_locked
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.push_keys import PushKeyHome, select_push_key_home
from ....storage.monitors.transactions.edit_push_key import create_pushed_monitor
from ....storage.results.queries.push_targets import (
    PushTarget,
    select_named_push_target,
    select_push_target,
)
from ....storage.results.rules.incoming_result import IncomingResult, ResultSource, StoreOutcome
from ....storage.results.rules.push_body import judge_body
from ....storage.results.rules.push_request import BadPush, Push, PushKind, is_report, read_push
from ....storage.results.rules.push_run import OPEN_RUNS_MOST, PUSH_OVERRUN
from ....storage.results.transactions.push_bodies import keep_body
from ....storage.results.transactions.record_push_event import end_run, record_mark
from ....storage.scheduling.queries.region_list import select_usable_regions
from ...wire.app_context import AppContext
from ...wire.database_wait import PUSH_SECONDS, outlast
from ...wire.errors import Problem
from ...wire.route import PUBLIC_BODY_LARGEST, Request, Route
from ..schemas.push import PushAnswer

log = logging.getLogger("leadline.http")

PUSH_PATH: Final = "/api/v1/public/push/"
# The same routes under the path of the widely copied ping interface.
PING_PATH: Final = "/ping/"
_FORMS: Final = (
    ("", "A heartbeat of a push monitor."),
    ("/{suffix}", "A heartbeat by its path, or of the monitor with the slug in its place."),
    ("/{slug}/{suffix}", "A heartbeat by its path, of the monitor with the slug."),
)

# Longest push in seconds: longer than the database waits and the deadline check together.
PUSH_LONGEST_SECONDS: Final = 30.0
# Cache lifetime of a token, in seconds.
KNOWN_SECONDS: Final = 0.9
KNOWN_MOST: Final = 50_000
# Messages that Leadline writes for a missed push and a long run. A sender cannot use them.
_OURS: Final = ("push_missed", PUSH_OVERRUN)
_UNTRACKED: Final = f"rid: the run is not tracked, {OPEN_RUNS_MOST} runs are open"
_BODY_NOT_KEPT: Final = "body: is not kept, the installation has no encryption key"
_BODY_CUT: Final = f"body: was cut at {PUBLIC_BODY_LARGEST} bytes"


class PushQuery(msgspec.Struct, frozen=True):
    status: str | None = None
    msg: str | None = None
    ping: str | None = None
    rid: str | None = None
    create: str | None = None


@dataclass(frozen=True, slots=True)
class _Report:
    """A push with its monitor and the body to keep, which is empty if none is kept."""

    target: PushTarget
    said: Push
    received: Instant
    # Longest time for which it can have waited before.
    waited_us: int
    kept: bytes = field(repr=False)

    @property
    def has_more(self) -> bool:
        """Returns whether the report of a result can end a run, or has a body to keep."""
        target = self.target
        return bool(self.kept or self.said.run or target.has_runs or target.max_run_seconds)

    async def keep_body(self, tx: Tx, keyring: Keyring) -> None:
        if self.kept:
            await keep_body(tx, self.target, self.said, self.kept, self.received, keyring)


@dataclass(frozen=True, slots=True)
class _Place:
    """Parts of a push URL. A push key is followed by a slug, a push token is not."""

    token: str
    slug: str
    suffix: str


def _place_of(words: Mapping[str, str]) -> _Place:
    """Returns the parts of the path. Raises Problem `not_found` if the path has no such parts.

    A single part that states the report, such as `fail`, is never a slug: the URL of a push key
    without its slug would create a monitor `fail` and report it as up.
    """
    parts = [words[name] for name in ("slug", "suffix") if name in words]
    has_slug = len(parts) > 1 or any(not is_report(part) for part in parts)
    slug = parts.pop(0).lower() if has_slug else ""
    suffix = parts[0] if parts else ""
    if (has_slug and not is_slug(slug)) or not is_report(suffix):
        raise Problem("not_found")
    return _Place(words["token"], slug, suffix)


async def _find(ask: Request) -> tuple[PushTarget, _Place]:
    """Returns the monitor of a push URL. A push key can create it.

    Raises: Problem `not_found`, if the token or the slug is unknown.
    """
    known, place = ask.context.push_targets, _place_of(ask.words)
    if kind_of(place.token) is not TokenKind.PUSH:
        raise Problem("not_found")
    # A slug is part of the key of the cache, the suffix is not: there is one entry per monitor.
    key, now = digest(f"{place.token}/{place.slug}"), trio.current_time()
    if key in known and now < known[key][0]:
        return known[key][1], place
    found = await _find_stored(ask, digest(place.token), place.slug)
    if len(known) >= KNOWN_MOST:
        known.clear()
    known[key] = (now + KNOWN_SECONDS, found)
    return found, place


async def _find_stored(ask: Request, token_hash: bytes, slug: str) -> PushTarget:
    if slug:
        return await _find_named(ask, token_hash, slug)
    async with ask.context.pool.statement("find_push_target") as tx:
        found = await select_push_target(tx, token_hash)
    if found is None:
        raise Problem("not_found")
    return found


async def _find_named(ask: Request, key: bytes, slug: str) -> PushTarget:
    """Returns the monitor of a push key and a slug, which is created if the project allows it."""
    context = ask.context
    async with context.pool.statement("find_push_key") as tx:
        home = await select_push_key_home(tx, key)
    if home is None:
        raise Problem("not_found")
    place = (home.org, home.project, slug)
    async with context.pool.statement("find_push_target") as tx:
        found = await select_named_push_target(tx, *place)
    if found is not None:
        return found
    if not home.creates_monitors or ask.values["create"] == ["0"]:
        raise Problem("not_found")
    taken: Refused | None = None
    try:
        await _create(context, home, slug)
    except Refused as refused:
        # Another push can have created it since the look-up.
        if refused.code != "slug_taken":
            raise
        taken = refused
    async with context.pool.statement("find_push_target") as tx:
        found = await select_named_push_target(tx, *place)
    if found is None:
        raise taken or Problem("not_found")
    return found


async def _create(context: AppContext, home: PushKeyHome, slug: str) -> None:
    with refused_when_locked():
        async with context.pool.transaction("create_pushed_monitor") as tx:
            regions = await select_usable_regions(
                tx, home.org, context.options.regions, context.options.reserved
            )
            await create_pushed_monitor(tx, home, slug, context.keyring, regions)
    context.on_edit()


async def push(ask: Request) -> PushAnswer:
    """Records a heartbeat or a mark. The disconnection of a sender does not cancel it."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + PUSH_LONGEST_SECONDS):
        return await _receive(ask)
    raise Unavailable(f"the push took longer than {PUSH_LONGEST_SECONDS:g} s")


async def _receive(ask: Request) -> PushAnswer:
    # The instant is the receipt. Until the response, `committed_through` stays before it.
    recorder = ask.context.recorder
    waited_us = recorder.waited_us()
    with recorder.receiving() as received:
        given = ask.values
        parameters = [given[name] for name in ("status", "msg", "ping", "rid")]
        until = trio.current_time() + PUSH_SECONDS
        target, place = await outlast(partial(_find, ask), until=until)
        said = read_push(place.suffix, *parameters)
        if isinstance(said, BadPush):
            raise Problem(f"{said.field}: {said.message}" if said.field else "not_found")
        said = judge_body(said, ask.body_start, target.keywords, is_cut=ask.body_cut)
        warnings = [*said.warnings, *([_BODY_CUT] if ask.body_cut else [])]
        kept = ask.body_start if target.keeps_bodies else b""
        if kept and not ask.context.keyring.can_seal:
            kept = b""
            warnings.append(_BODY_NOT_KEPT)
        report = _Report(target, said, received, waited_us, kept)
        if target.enabled and said.covers:
            if report.has_more:
                report = await outlast(partial(_end, ask.context, report), until=until)
            await _record(ask.context, report, until)
        elif target.enabled:
            if not await outlast(partial(_mark, ask.context, report), until=until):
                warnings.append(_UNTRACKED)
            if said.mark is PushKind.START and not target.has_runs:
                ask.context.push_targets.clear()
    return PushAnswer(ok=True, monitor_id=target.uid, up=said.up, warnings=warnings or UNSET)


async def _mark(context: AppContext, report: "_Report") -> bool:
    """Records a mark with its body. Returns False if it starts a run that cannot be tracked."""
    async with context.pool.transaction("mark_push") as tx:
        await report.keep_body(tx, context.keyring)
        return await record_mark(tx, report.target, report.said, report.received)


async def _end(context: AppContext, report: "_Report") -> "_Report":
    """Ends the run of a result and stores its body. Returns the report with the duration of the
    run, if it has no `ping`."""
    async with context.pool.transaction("end_push_run") as tx:
        await report.keep_body(tx, context.keyring)
        duration_us = await end_run(tx, report.target, report.said, report.received)
    if duration_us is None or report.said.ping_ms is not None:
        return report
    return replace(report, said=replace(report.said, ping_ms=duration_us // 1_000))


async def _record(context: AppContext, report: "_Report", until: float) -> None:
    target, said = report.target, report.said
    message = f"{said.message} (sent)" if said.message in _OURS else said.message
    recorded = await context.recorder.record(
        IncomingResult(
            org=target.org,
            monitor=target.monitor,
            shard=target.shard,
            ts=report.received,
            up=said.up,
            latency_ms=said.ping_ms or 0,
            code=said.code,
            msg=message,
            source=ResultSource.PUSH,
            waited_us=report.waited_us,
        ),
        until=until,
    )
    if recorded.fate is StoreOutcome.IGNORED:
        raise Problem("not_found")
    if recorded.fate not in (StoreOutcome.LIVE, StoreOutcome.HISTORY, StoreOutcome.PAUSED):
        if recorded.fate is not StoreOutcome.DELAYED:
            context.recorder.count_lost_push()
        log.error(
            "push is not stored yet",
            extra={"monitor": str(target.uid), "fate": recorded.fate, "cause": recorded.reason},
        )
        raise Problem("internal_error")


def _routes() -> tuple[Route, ...]:
    return tuple(
        Route(
            method=method,
            path=f"{root}{{token}}{suffix}",
            action=Permission(Need.NOBODY),
            handler=push,
            summary=summary,
            tag="push",
            query=PushQuery,
            tolerant=True,
            answer=PushAnswer,
            body_ignored=True,
            body_largest=PUBLIC_BODY_LARGEST,
            short=True,
        )
        for root in (PUSH_PATH, PING_PATH)
        for method in ("POST", "GET")
        for suffix, summary in _FORMS
    )


ROUTES: Final = _routes()
