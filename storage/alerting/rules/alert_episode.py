"""A service's trouble as it is told: once when it was seen to last, and once that it is over.

An episode opens when a service that owns paging was so many evaluations in a row in a state that it
pages on, and ends at the first one that is known and is none of these. What is not known, or in
maintenance, neither opens nor ends it, nor does it break the row. A service that is made of nothing
has no trouble: an episode that is open ends. Where every member that is down
is silent for a cause of its own, the cause is told of and not the service. While everything is
silenced none opens, pages or reminds. Where a member's own
page stands for the same trouble, or nobody can be reached, the episode opens and pages nobody; it
pages later, when no such page stands any more.
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
    """What a service is seen to be at an evaluation."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class AlertingPolicy:
    """How a service speaks."""

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
        """Whether it is known to be nothing that is paged on."""
        return live not in (
            ServiceCondition.UNKNOWN,
            ServiceCondition.EXCLUDED,
        ) and not self.pages_on(live)


@dataclass(frozen=True, slots=True)
class Episode:
    """One that is open. `announced`: the service itself paged for it. `taken_up`: somebody has
    acknowledged its incident, or said that it is over."""

    announced: bool
    notified_at: Instant | None
    taken_up: bool


@dataclass(frozen=True, slots=True)
class EpisodeContext:
    """`explained`: every member that is down is silent for a cause of its own. `spoken_for`: a
    page of a member's own stands for the trouble. `reaches`: somebody can be paged. `of_nothing`:
    no member is declared any more of which anything follows. `silenced`: nobody is told of anything
    new just now."""

    explained: bool = False
    spoken_for: bool = False
    reaches: bool = True
    of_nothing: bool = False
    silenced: bool = False


class EpisodeAction(StrEnum):
    """What follows from an evaluation. `adopt` opens an episode that pages nobody, `announce` pages
    for one that is open."""

    NOTHING = "nothing"
    OPEN = "open"
    ADOPT = "adopt"
    ANNOUNCE = "announce"
    REMIND = "remind"
    END = "end"


class NoPageReason(StrEnum):
    """Why a service that is in a state it pages on pages nobody for it now."""

    PENDING = "onset_pending"
    HELD = "held"
    ADOPTED = "adopted"
    UNREACHED = "unreached"
    TAKEN_UP = "taken_up"
    SILENCED = "silenced"


@dataclass(frozen=True, slots=True)
class EpisodeDecision:
    act: EpisodeAction
    streak: int
    quiet: NoPageReason | None = None


def live_of(policies: Policies, members: Iterable[tuple[str, MemberState]]) -> ServiceCondition:
    """Without members nothing is known."""
    found = list(members)
    return _live(state(policies, found)) if found else ServiceCondition.UNKNOWN


def _live(said: ServiceHealthState) -> ServiceCondition:
    return ServiceCondition.EXCLUDED if said.health is None else ServiceCondition(said.health.value)


def is_explained(
    policies: Policies, speaking: AlertingPolicy, members: Iterable[tuple[str, MemberState, bool]]
) -> bool:
    """Of (region, seen, is silent for a cause of its own): whether nothing but such members makes
    the trouble."""
    found = list(members)
    downs = [silent for _, seen, silent in found if seen is MemberState.DOWN]
    if not downs or not all(downs):
        return False
    without = [(r, MemberState.UP if seen is MemberState.DOWN else seen) for r, seen, _ in found]
    return not speaking.pages_on(live_of(policies, without))


def streak_after(speaking: AlertingPolicy, live: ServiceCondition, streak: int) -> int:
    """Evaluations in a row that would page, up to what confirms them."""
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
    """What follows from seeing it so; `streak` is that of the evaluation before."""
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
    if around.explained:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.HELD)
    if around.silenced:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.SILENCED)
    if around.spoken_for:
        return EpisodeDecision(EpisodeAction.ADOPT, streak, NoPageReason.ADOPTED)
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
    if due and around.silenced:
        return EpisodeDecision(EpisodeAction.NOTHING, streak, NoPageReason.SILENCED)
    return EpisodeDecision(EpisodeAction.REMIND if due else EpisodeAction.NOTHING, streak)


def _not_yet_announced(
    speaking: AlertingPolicy, streak: int, around: EpisodeContext
) -> EpisodeDecision:
    quiet = None
    if around.spoken_for:
        quiet = NoPageReason.ADOPTED
    elif around.explained:
        quiet = NoPageReason.HELD
    elif around.silenced:
        quiet = NoPageReason.SILENCED
    elif not around.reaches:
        quiet = NoPageReason.UNREACHED
    if quiet is None and speaking.owns_paging:
        return EpisodeDecision(EpisodeAction.ANNOUNCE, streak)
    return EpisodeDecision(EpisodeAction.NOTHING, streak, quiet)


_TAILS: Final = {
    ServiceCondition.DOWN: " is down",
    ServiceCondition.DEGRADED: " is degraded",
    ServiceCondition.UNKNOWN: " cannot be seen",
}


def tail_of(live: ServiceCondition) -> str:
    """What an episode's title says of the service, after its name."""
    return _TAILS.get(live, " is in trouble")
