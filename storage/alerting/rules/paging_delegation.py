"""Whether a monitor's trouble is told by a service that it is a part of, or by the monitor itself.

It keeps true: a monitor is quiet only while a service that owns its paging can be seen to speak:
evaluated lately without an error, under the declaration and the settings of now, with somebody to
page. Of each thing that must hold, its absence has a reason, and then the monitor speaks. Nobody
has to say that a service is broken: what is asked is whether it is known to work.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import MINUTE, SECOND, Instant
from ...core.key import ServiceKey
from .alert_episode import EVERY_US, AlertingPolicy, ServiceCondition

# How long what was seen under another revision or other settings still counts.
TOLERATED_US: Final = 2 * EVERY_US
# How long a page may be on its way before it counts as one that nobody gets.
DELIVERED_WITHIN_US: Final = 5 * MINUTE
# Who judges that a lease has run out was there without a break for at least so long.
STEADY_US: Final = 90 * SECOND


class SignalReason(StrEnum):
    """Why a service cannot speak, in the order in which it is looked for."""

    NO_OWNING_SERVICE = "no_owning_service"
    NO_GOVERNING_REVISION = "no_governing_revision"
    POLICY_PAGES_NOTHING = "policy_pages_nothing"
    STATE_NOT_PAGEABLE = "state_not_pageable"
    NEVER_EVALUATED = "never_evaluated"
    GENERATION_CHANGED = "generation_changed"
    REVISION_CHANGED = "revision_changed"
    EVALUATION_ERROR = "evaluation_error"
    STALE_LEASE = "stale_lease"
    NO_ENABLED_TARGET = "no_enabled_target"
    HELD = "held"
    RULE_UNEVALUATED = "rule_unevaluated"
    UNROUTABLE = "unroutable"
    ONSET_PENDING = "onset_pending"
    ONSET_UNDELIVERED = "onset_undelivered"
    LATCH_INCONSISTENT = "latch_inconsistent"


class RouteState(StrEnum):
    """Whom a service's pages get to: its ladder, or who is on call."""

    SOMEBODY = "somebody"
    DISABLED = "disabled"
    NOBODY = "nobody"
    # Neither ladder nor schedule is named.
    UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class EpisodeLatch:
    """The service's open episode. `notified_at` is when its first page was written, None while none
    was; `is_due` says that one is still to come by its ladder. `heard`: one has arrived, or a
    person has taken it up. `dead`: all of them were given up."""

    announced: bool
    has_incident: bool
    notified_at: Instant | None
    is_due: bool
    heard: bool
    dead: bool


@dataclass(frozen=True, slots=True)
class PagingSignal:
    """What was last seen of a service, live or of its budget. `state` is None of a budget."""

    evaluated_at: Instant | None
    generation: int | None
    failed: bool
    lease_holds: bool
    revision: int | None = None
    state: ServiceCondition | None = None
    held: bool = False
    undecided: bool = False


@dataclass(frozen=True, slots=True)
class Owner:
    """A service that owns its members' paging. `governs_from` is when its governing revision began
    to; `burns` says that its budget is watched by rules."""

    key: ServiceKey
    revision: int | None
    governs_from: Instant | None
    speaking: AlertingPolicy
    reach: RouteState
    generation: int
    edited_at: Instant
    live: PagingSignal
    burn: PagingSignal
    burns: bool = False
    latch: EpisodeLatch | None = None


@dataclass(frozen=True, slots=True)
class Delegated:
    """The monitor is quiet; these services can speak."""

    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class FailOpen:
    """The monitor speaks. `service` is whose reason it is, None where it belongs to none."""

    reason: SignalReason
    service: ServiceKey | None = None


def decide_paging(
    owners: Sequence[Owner], known_at: Instant, now: Instant, *, is_steady: bool
) -> Delegated | FailOpen:
    """Of an outage that nobody was told of; `known_at` is when it was first left to a service."""
    found = {owner.key: why_not(owner, now, known_at, is_steady=is_steady) for owner in owners}
    return _quiet_while_any_can(found)


def decide_burn_paging(
    owners: Sequence[Owner], now: Instant, *, is_steady: bool
) -> Delegated | FailOpen:
    """Of a monitor's budget that burns too fast."""
    found = {owner.key: why_not_burn(owner, now, is_steady=is_steady) for owner in owners}
    return _quiet_while_any_can(found)


def _quiet_while_any_can(found: Mapping[ServiceKey, SignalReason | None]) -> Delegated | FailOpen:
    able = tuple(key for key, reason in found.items() if reason is None)
    if able:
        return Delegated(able)
    for key, reason in found.items():
        if reason is not None:
            return FailOpen(reason, key)
    return FailOpen(SignalReason.NO_OWNING_SERVICE)


def why_not(
    owner: Owner, now: Instant, known_at: Instant | None = None, *, is_steady: bool
) -> SignalReason | None:
    """The first reason for which a service cannot speak of its members; None where it can. With
    `known_at` also of an outage that is known since."""
    for reason, holds in _reasons(owner, now, known_at, is_steady=is_steady):
        if holds:
            return reason
    return None


def _reasons(
    owner: Owner, now: Instant, known_at: Instant | None, *, is_steady: bool
) -> Iterator[tuple[SignalReason, bool]]:
    live = owner.live
    yield SignalReason.NO_GOVERNING_REVISION, owner.revision is None
    yield SignalReason.POLICY_PAGES_NOTHING, _pages_nothing(owner)
    yield SignalReason.STATE_NOT_PAGEABLE, _is_not_paged_on(owner, known_at)
    yield SignalReason.NEVER_EVALUATED, live.evaluated_at is None
    if not live.lease_holds and not is_steady:
        # Perhaps nobody could renew it while we were away too.
        return
    yield SignalReason.GENERATION_CHANGED, _is_of_another_generation(owner, live, now)
    # What was changed is nothing that a lease of before could tell.
    changed = live.revision != owner.revision
    late = not live.lease_holds or now - (owner.governs_from or now) >= TOLERATED_US
    yield SignalReason.REVISION_CHANGED, changed and late
    yield SignalReason.EVALUATION_ERROR, live.failed
    yield SignalReason.STALE_LEASE, not live.lease_holds
    yield SignalReason.NO_ENABLED_TARGET, owner.reach is RouteState.DISABLED
    yield SignalReason.HELD, live.held and _is_seen_since(live, known_at)
    yield SignalReason.UNROUTABLE, owner.reach is RouteState.NOBODY
    yield SignalReason.ONSET_PENDING, is_steady and _is_overdue(owner, known_at, now)
    if owner.latch is not None:
        reason = why_unheard(owner.latch, now)
        if reason is not None:
            yield reason, True


def why_not_burn(owner: Owner, now: Instant, *, is_steady: bool) -> SignalReason | None:
    """As `why_not`, of telling that a budget burns too fast."""
    for reason, holds in _burn_reasons(owner, now, is_steady=is_steady):
        if holds:
            return reason
    return None


def _burn_reasons(
    owner: Owner, now: Instant, *, is_steady: bool
) -> Iterator[tuple[SignalReason, bool]]:
    burn = owner.burn
    yield SignalReason.NO_GOVERNING_REVISION, owner.revision is None
    nothing = not owner.burns or owner.reach is RouteState.UNNAMED
    yield SignalReason.POLICY_PAGES_NOTHING, nothing
    yield SignalReason.NEVER_EVALUATED, burn.evaluated_at is None
    if not burn.lease_holds and not is_steady:
        return
    yield SignalReason.GENERATION_CHANGED, _is_of_another_generation(owner, burn, now)
    yield SignalReason.EVALUATION_ERROR, burn.failed
    yield SignalReason.STALE_LEASE, not burn.lease_holds
    yield SignalReason.NO_ENABLED_TARGET, owner.reach is RouteState.DISABLED
    yield SignalReason.RULE_UNEVALUATED, burn.undecided
    yield SignalReason.UNROUTABLE, owner.reach is RouteState.NOBODY


def why_unheard(latch: EpisodeLatch, now: Instant) -> SignalReason | None:
    """Why an episode that was announced has told nobody; None where somebody heard of it, or may
    yet."""
    if not latch.announced or latch.heard:
        return None
    if not latch.has_incident:
        return SignalReason.LATCH_INCONSISTENT
    if latch.notified_at is None:
        return None if latch.is_due else SignalReason.LATCH_INCONSISTENT
    late = now - latch.notified_at >= DELIVERED_WITHIN_US
    return SignalReason.ONSET_UNDELIVERED if latch.dead or late else None


def _pages_nothing(owner: Owner) -> bool:
    return not owner.speaking.pages_anything or owner.reach is RouteState.UNNAMED


def _is_not_paged_on(owner: Owner, known_at: Instant | None) -> bool:
    """Somebody must hear of it; that it is healthy all the same is what was declared."""
    live, latch = owner.live, owner.latch
    # One that has told, or that a person has taken up, stands for what is found later too.
    if latch is not None and (latch.announced or latch.heard):
        return False
    if not _is_seen_since(live, known_at):
        return False
    in_trouble = live.state in (
        ServiceCondition.DEGRADED,
        ServiceCondition.DOWN,
        ServiceCondition.UNKNOWN,
    )
    return in_trouble and not owner.speaking.pages_on(live.state or ServiceCondition.UNKNOWN)


def _is_of_another_generation(owner: Owner, signal: PagingSignal, now: Instant) -> bool:
    late = not signal.lease_holds or now - owner.edited_at >= TOLERATED_US
    return signal.generation != owner.generation and late


def _is_seen_since(signal: PagingSignal, known_at: Instant | None) -> bool:
    return (
        known_at is not None and signal.evaluated_at is not None and signal.evaluated_at > known_at
    )


def _is_overdue(owner: Owner, known_at: Instant | None, now: Instant) -> bool:
    """It had the time to confirm what it saw, and said nothing."""
    if known_at is None or owner.latch is not None:
        return False
    if _is_seen_since(owner.live, known_at) and owner.live.state is ServiceCondition.HEALTHY:
        return False
    return now - known_at >= (owner.speaking.confirm_evaluations + 2) * EVERY_US
