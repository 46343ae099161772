"""Alert episodes of services: when an episode opens, pages, reminds and ends.

An episode opens after `confirm_evaluations` consecutive evaluations in a paging condition, if the
service owns paging. It ends at the first known condition that does not page. An excluded condition,
or an unknown one that does not page, neither opens nor ends an episode and keeps the streak. An
open episode of a service without members ends.

No episode opens if every down member is suppressed for a cause of its own. During a global silence
no episode opens, pages or reminds. If a member's own page covers the problem, or no channel can be
reached, the episode opens without a page. It pages later, when neither is the case any more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ...core.instant import SECOND, Instant
from ...services.rules.service_health import MemberState, Policies, ServiceHealthState, state

EVERY_US: Final = 30 * SECOND
CONFIRM_MOST: Final = 10


class ServiceCondition(StrEnum):
    """Condition of a service at an evaluation."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class AlertingPolicy:
    """Alerting settings of a service."""

    owns_paging: bool
    page_on: frozenset[ServiceCondition]
    page_on_unknown: bool
    confirm_evaluations: int
    renotify_us: int = 0

    @property
    def pages_anything(self) -> bool:
        return bool(self.page_on) or self.page_on_unknown

    def pages_on(self, live: ServiceCondition) -> bool:
        return self.page_on_unknown if live is ServiceCondition.UNKNOWN else live in self.page_on

    def is_well(self, live: ServiceCondition) -> bool:
        """Returns whether the condition is known and does not page."""
        return live not in (
            ServiceCondition.UNKNOWN,
            ServiceCondition.EXCLUDED,
        ) and not self.pages_on(live)


@dataclass(frozen=True, slots=True)
class Episode:
    """Open episode of a service.

    `announced`: the service itself has paged for it. `taken_up`: a user has acknowledged or
    resolved its incident.
    """

    announced: bool
    notified_at: Instant | None
    taken_up: bool


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """Surroundings of an evaluation.

    Args:
        explained: every down member is suppressed for a cause of its own.
        spoken_for: a member's own page covers the problem.
        reaches: at least one channel can be paged.
        of_nothing: the governing revision declares no SLI members.
        silenced: a mute or the global silence is in force.
        closed: the page has a low urgency and waits for the support hours of the service.
    """

    explained: bool = False
    spoken_for: bool = False
    reaches: bool = True
    of_nothing: bool = False
    silenced: bool = False
    closed: bool = False


class EpisodeAction(StrEnum):
    """Action of an evaluation.

    `ADOPT` opens an episode without a page; `ANNOUNCE` pages for an open episode.
    """

    NOTHING = "nothing"
    OPEN = "open"
    ADOPT = "adopt"
    ANNOUNCE = "announce"
    REMIND = "remind"
    END = "end"


class NoPageReason(StrEnum):
    """Reason why a service in a paging condition does not page now."""

    PENDING = "onset_pending"
    HELD = "held"
    ADOPTED = "adopted"
    UNREACHED = "unreached"
    TAKEN_UP = "taken_up"
    SILENCED = "silenced"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class EpisodeDecision:
    act: EpisodeAction
    streak: int
    quiet: NoPageReason | None = None


def live_of(policies: Policies, members: Iterable[tuple[str, MemberState]]) -> ServiceCondition:
    """Returns the condition that the members give; unknown without members."""
    found = list(members)
    return _live(state(policies, found)) if found else ServiceCondition.UNKNOWN


def _live(said: ServiceHealthState) -> ServiceCondition:
    return ServiceCondition.EXCLUDED if said.health is None else ServiceCondition(said.health.value)


def is_explained(
    policies: Policies, speaking: AlertingPolicy, members: Iterable[tuple[str, MemberState, bool]]
) -> bool:
    """Returns whether the service would not page without its suppressed down members.

    Args:
        members: (region, state, is suppressed for a cause of its own) per member.
    """
    found = list(members)
    downs = [silent for _, seen, silent in found if seen is MemberState.DOWN]
    if not downs or not all(downs):
        return False
    without = [(r, MemberState.UP if seen is MemberState.DOWN else seen) for r, seen, _ in found]
    return not speaking.pages_on(live_of(policies, without))


def streak_after(speaking: AlertingPolicy, live: ServiceCondition, streak: int) -> int:
    """Returns the number of consecutive paging evaluations, at most `confirm_evaluations`."""
    if speaking.pages_on(live):
        return min(streak + 1, speaking.confirm_evaluations)
    return 0 if speaking.is_well(live) else min(streak, speaking.confirm_evaluations)


def decide(
    speaking: AlertingPolicy,
    live: ServiceCondition,
    streak: int,
    episode: Episode | None,
    around: EpisodeContext,
    now: Instant,
) -> EpisodeDecision:
    """Returns the action of an evaluation. `streak` is that of the previous evaluation."""
    if around.of_nothing:
        return EpisodeDecision(EpisodeAction.NOTHING if episode is None else EpisodeAction.END, 0)
    streak = streak_after(speaking, live, streak)
    if episode is not None and speaking.is_well(live):
        return EpisodeDecision(EpisodeAction.END, streak)
    if not speaking.pages_on(live):
        return EpisodeDecision(EpisodeAction.NOTHING, streak)
    if episode is None:
        return _onset(speaking, streak, around)
    return _goes_on(speaking, streak, episode, around, now)


def _onset(speaking: AlertingPolicy, streak: int, around: EpisodeContext) -> EpisodeDecision:
    if not speaking.owns_paging:
        return EpisodeDecision(EpisodeAction.NOTHING, streak)
    if streak < speaking.confirm_evaluations:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.PENDING)
    if around.silenced:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.SILENCED)
    if around.explained:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.HELD)
    if around.spoken_for:
        return EpisodeDecision(EpisodeAction.ADOPT, streak, NoPageReason.ADOPTED)
    if around.closed:
        return EpisodeDecision(EpisodeAction.ADOPT, streak, NoPageReason.CLOSED)
    return (
        EpisodeDecision(EpisodeAction.OPEN, streak)
        if around.reaches
        else EpisodeDecision(EpisodeAction.ADOPT, streak, NoPageReason.UNREACHED)
    )


def _goes_on(
    speaking: AlertingPolicy, streak: int, episode: Episode, around: EpisodeContext, now: Instant
) -> EpisodeDecision:
    if episode.taken_up:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.TAKEN_UP)
    if not episode.announced:
        return _not_yet_announced(speaking, streak, around)
    due = speaking.renotify_us and (episode.notified_at or now) + speaking.renotify_us <= now
    if due and (around.silenced or around.closed):
        quiet = NoPageReason.SILENCED if around.silenced else NoPageReason.CLOSED
        return EpisodeDecision(EpisodeAction.NOTHING, streak, quiet)
    return EpisodeDecision(EpisodeAction.REMIND if due else EpisodeAction.NOTHING, streak)


def _not_yet_announced(
    speaking: AlertingPolicy, streak: int, around: EpisodeContext
) -> EpisodeDecision:
    quiet = None
    if around.spoken_for:
        quiet = NoPageReason.ADOPTED
    elif around.silenced:
        quiet = NoPageReason.SILENCED
    elif around.explained:
        quiet = NoPageReason.HELD
    elif around.closed:
        quiet = NoPageReason.CLOSED
    elif not around.reaches:
        quiet = NoPageReason.UNREACHED
    if quiet is None and speaking.owns_paging:
        return EpisodeDecision(EpisodeAction.ANNOUNCE, streak)
    return EpisodeDecision(EpisodeAction.NOTHING, streak, quiet)


_TAILS: Final = {
    ServiceCondition.DOWN: " is down",
    ServiceCondition.DEGRADED: " is degraded",
    ServiceCondition.UNKNOWN: " is unknown",
}


def tail_of(live: ServiceCondition) -> str:
    """Returns the title of an episode after the service name."""
    return _TAILS.get(live, " has a problem")
