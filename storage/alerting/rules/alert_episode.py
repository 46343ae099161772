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
from ...services.rules.service_health import Policies, Seen, State, state

EVERY_US: Final = 30 * SECOND
CONFIRM_MOST: Final = 10


class Live(StrEnum):
    """What a service is seen to be at an evaluation."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    DOWN = "down"
    UNKNOWN = "unknown"
    EXCLUDED = "excluded"


@dataclass(frozen=True, slots=True)
class Speaking:
    """How a service speaks."""

    owns_paging: bool
    page_on: frozenset[Live]
    page_on_unknown: bool
    confirm_evaluations: int
    renotify_us: int = 0

    @property
    def pages_anything(self) -> bool:
        return bool(self.page_on) or self.page_on_unknown

    def pages_on(self, live: Live) -> bool:
        return self.page_on_unknown if live is Live.UNKNOWN else live in self.page_on

    def is_well(self, live: Live) -> bool:
        """Whether it is known to be nothing that is paged on."""
        return live not in (Live.UNKNOWN, Live.EXCLUDED) and not self.pages_on(live)


@dataclass(frozen=True, slots=True)
class Episode:
    """One that is open. `announced`: the service itself paged for it. `taken_up`: somebody has
    acknowledged its incident, or said that it is over."""

    announced: bool
    told_at: Instant | None
    taken_up: bool


@dataclass(frozen=True, slots=True)
class Around:
    """`explained`: every member that is down is silent for a cause of its own. `spoken_for`: a
    page of a member's own stands for the trouble. `reaches`: somebody can be paged. `of_nothing`:
    no member is declared any more of which anything follows. `silenced`: nobody is told of anything
    new just now."""

    explained: bool = False
    spoken_for: bool = False
    reaches: bool = True
    of_nothing: bool = False
    silenced: bool = False


class Act(StrEnum):
    """What follows from an evaluation. `adopt` opens an episode that pages nobody, `announce` pages
    for one that is open."""

    NOTHING = "nothing"
    OPEN = "open"
    ADOPT = "adopt"
    ANNOUNCE = "announce"
    REMIND = "remind"
    END = "end"


class Quiet(StrEnum):
    """Why a service that is in a state it pages on pages nobody for it now."""

    PENDING = "onset_pending"
    HELD = "held"
    ADOPTED = "adopted"
    UNREACHED = "unreached"
    TAKEN_UP = "taken_up"
    SILENCED = "silenced"


@dataclass(frozen=True, slots=True)
class Step:
    act: Act
    streak: int
    quiet: Quiet | None = None


def live_of(policies: Policies, members: Iterable[tuple[str, Seen]]) -> Live:
    """Without members nothing is known."""
    found = list(members)
    return _live(state(policies, found)) if found else Live.UNKNOWN


def _live(said: State) -> Live:
    return Live.EXCLUDED if said.health is None else Live(said.health.value)


def is_explained(
    policies: Policies, speaking: Speaking, members: Iterable[tuple[str, Seen, bool]]
) -> bool:
    """Of (region, seen, is silent for a cause of its own): whether nothing but such members makes
    the trouble."""
    found = list(members)
    downs = [silent for _, seen, silent in found if seen is Seen.DOWN]
    if not downs or not all(downs):
        return False
    without = [(r, Seen.UP if seen is Seen.DOWN else seen) for r, seen, _ in found]
    return not speaking.pages_on(live_of(policies, without))


def streak_after(speaking: Speaking, live: Live, streak: int) -> int:
    """Evaluations in a row that would page, up to what confirms them."""
    if speaking.pages_on(live):
        return min(streak + 1, speaking.confirm_evaluations)
    return 0 if speaking.is_well(live) else min(streak, speaking.confirm_evaluations)


def decide(
    speaking: Speaking,
    live: Live,
    streak: int,
    episode: Episode | None,
    around: Around,
    now: Instant,
) -> Step:
    """What follows from seeing it so; `streak` is that of the evaluation before."""
    if around.of_nothing:
        return Step(Act.NOTHING if episode is None else Act.END, 0)
    streak = streak_after(speaking, live, streak)
    if episode is not None and speaking.is_well(live):
        return Step(Act.END, streak)
    if not speaking.pages_on(live):
        return Step(Act.NOTHING, streak)
    if episode is None:
        return _onset(speaking, streak, around)
    return _goes_on(speaking, streak, episode, around, now)


def _onset(speaking: Speaking, streak: int, around: Around) -> Step:
    if not speaking.owns_paging:
        return Step(Act.NOTHING, streak)
    if streak < speaking.confirm_evaluations:
        return Step(Act.NOTHING, streak, Quiet.PENDING)
    if around.explained:
        return Step(Act.NOTHING, streak, Quiet.HELD)
    if around.silenced:
        return Step(Act.NOTHING, streak, Quiet.SILENCED)
    if around.spoken_for:
        return Step(Act.ADOPT, streak, Quiet.ADOPTED)
    return Step(Act.OPEN, streak) if around.reaches else Step(Act.ADOPT, streak, Quiet.UNREACHED)


def _goes_on(
    speaking: Speaking, streak: int, episode: Episode, around: Around, now: Instant
) -> Step:
    if episode.taken_up:
        return Step(Act.NOTHING, streak, Quiet.TAKEN_UP)
    if not episode.announced:
        return _not_yet_announced(speaking, streak, around)
    due = speaking.renotify_us and (episode.told_at or now) + speaking.renotify_us <= now
    if due and around.silenced:
        return Step(Act.NOTHING, streak, Quiet.SILENCED)
    return Step(Act.REMIND if due else Act.NOTHING, streak)


def _not_yet_announced(speaking: Speaking, streak: int, around: Around) -> Step:
    quiet = None
    if around.spoken_for:
        quiet = Quiet.ADOPTED
    elif around.explained:
        quiet = Quiet.HELD
    elif around.silenced:
        quiet = Quiet.SILENCED
    elif not around.reaches:
        quiet = Quiet.UNREACHED
    if quiet is None and speaking.owns_paging:
        return Step(Act.ANNOUNCE, streak)
    return Step(Act.NOTHING, streak, quiet)


_TAILS: Final = {
    Live.DOWN: " is down",
    Live.DEGRADED: " is degraded",
    Live.UNKNOWN: " cannot be seen",
}


def tail_of(live: Live) -> str:
    """What an episode's title says of the service, after its name."""
    return _TAILS.get(live, " is in trouble")
