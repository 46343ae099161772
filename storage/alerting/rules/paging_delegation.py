"""Delegation of paging from a monitor to the services that own it.

Invariant: a monitor is delegated only while an owning service demonstrably can page. Such a service
has a recent evaluation without an error, under the current revision and settings, and a reachable
paging route. Each missing condition has a reason, with which the monitor fails open.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import MINUTE, SECOND, Instant
from ...core.key import ServiceKey
from .alert_episode import EVERY_US, AlertingPolicy, ServiceCondition

# Time for which an evaluation under the previous revision or settings still counts.
TOLERATED_US: Final = 2 * EVERY_US
# Time after which an undelivered page counts as failed.
DELIVERED_WITHIN_US: Final = 5 * MINUTE
# Minimum uninterrupted run of a process that may judge a lease as expired.
STEADY_US: Final = 90 * SECOND


class SignalReason(StrEnum):
    """Reason why a service cannot page, in the order of evaluation."""

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
    """State of a service's paging route: its escalation policy or on-call schedule."""

    SOMEBODY = "somebody"
    DISABLED = "disabled"
    NOBODY = "nobody"
    # The service has neither an escalation policy nor a schedule.
    UNNAMED = "unnamed"


@dataclass(frozen=True, slots=True)
class EpisodeLatch:
    """Delivery state of the service's open episode.

    Args:
        notified_at: instant at which the first page was written, None before that.
        is_due: the escalation policy has a further step to take.
        heard: a page was delivered, or a user acknowledged or resolved the incident.
        dead: every delivery failed.
    """

    announced: bool
    has_incident: bool
    notified_at: Instant | None
    is_due: bool
    heard: bool
    dead: bool


@dataclass(frozen=True, slots=True)
class PagingSignal:
    """Last evaluation of one signal, live or burn. A burn signal has no `state`."""

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
    """Service that owns its members' paging.

    `governs_from` is the start of its governing revision; `burns`: burn rules are enabled.
    """

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
    """The monitor does not page, because these services can."""

    services: tuple[ServiceKey, ...]


@dataclass(frozen=True, slots=True)
class FailOpen:
    """The monitor pages. `service` is the service with the reason, None without an owner."""

    reason: SignalReason
    service: ServiceKey | None = None


def decide_paging(
    owners: Sequence[Owner], known_at: Instant, now: Instant, *, is_steady: bool
) -> Delegated | FailOpen:
    """Decides the paging of an outage that is not announced.

    Args:
        known_at: instant at which the outage was first delegated.
    """
    found = {owner.key: why_not(owner, now, known_at, is_steady=is_steady) for owner in owners}
    return _quiet_while_any_can(found)


def decide_burn_paging(
    owners: Sequence[Owner], now: Instant, *, is_steady: bool
) -> Delegated | FailOpen:
    """Decides the paging of a monitor's burn-rate alert."""
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
    """Returns the first reason why a service cannot page for its members, None if it can.

    With `known_at`, the reasons of an outage that is known since that instant apply too.
    """
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
        # The interruption of this process may have prevented the renewal as well.
        return
    yield SignalReason.GENERATION_CHANGED, _is_of_another_generation(owner, live, now)
    # A lease from before the new revision does not cover the changed members.
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
    """Returns the first reason why a service cannot page for burn-rate alerts."""
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
    """Returns why an announced episode has reached no channel, None if it has or still can."""
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
    """Returns whether the service is in a condition that it does not page on.

    Returns False for a service that is healthy despite a down member, as it was so declared.
    """
    live, latch = owner.live, owner.latch
    # The page of an announced or acknowledged episode covers later outages too.
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
    """Returns whether the time to confirm the outage has passed without an episode."""
    if known_at is None or owner.latch is not None:
        return False
    if _is_seen_since(owner.live, known_at) and owner.live.state is ServiceCondition.HEALTHY:
        return False
    return now - known_at >= (owner.speaking.confirm_evaluations + 2) * EVERY_US
