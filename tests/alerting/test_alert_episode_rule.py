"""When the alert of a service opens, pages, reminds and ends, compared with a model that keeps the
whole history.
"""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.alert_episode import (
    AlertingPolicy,
    Episode,
    EpisodeAction,
    EpisodeContext,
    NoPageReason,
    ServiceCondition,
    decide,
    is_explained,
    live_of,
    streak_after,
)
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.services.rules.service_health import (
    AggregationMode,
    MemberState,
    MissingData,
    Policies,
)

EVERY = 30 * SECOND
LIVES = st.sampled_from(list(ServiceCondition))
SPEAKING = st.builds(
    AlertingPolicy,
    owns_paging=st.booleans(),
    page_on=st.frozensets(st.sampled_from([ServiceCondition.DOWN, ServiceCondition.DEGRADED])),
    page_on_unknown=st.booleans(),
    confirm_evaluations=st.integers(1, 4),
    renotify_us=st.sampled_from([0, 60 * SECOND, 100 * SECOND]),
)
AROUND = st.builds(
    EpisodeContext, explained=st.booleans(), spoken_for=st.booleans(), reaches=st.booleans()
)
LOOKS = st.lists(st.tuples(LIVES, AROUND, st.booleans()), max_size=40)


def play(
    speaking: AlertingPolicy, looks: list[tuple[ServiceCondition, EpisodeContext, bool]]
) -> list[tuple[EpisodeAction, Episode | None]]:
    """Returns the action of each evaluation, with the episode that is open after it."""
    episode: Episode | None = None
    streak, found = 0, []
    for n, (live, around, taken_up) in enumerate(looks):
        now = Instant(n * EVERY)
        if episode is not None:
            episode = Episode(episode.announced, episode.notified_at, taken_up)
        step = decide(speaking, live, streak, episode, around, now)
        streak = step.streak
        match step.act:
            case EpisodeAction.OPEN:
                episode = Episode(True, now, False)
            case EpisodeAction.ADOPT:
                episode = Episode(False, None, False)
            case EpisodeAction.ANNOUNCE | EpisodeAction.REMIND:
                assert episode is not None
                episode = Episode(True, now, episode.taken_up)
            case EpisodeAction.END:
                episode = None
        found.append((step.act, episode))
    return found


@given(SPEAKING, LOOKS)
def test_an_episode_opens_once_pages_once_and_ends_once(
    speaking: AlertingPolicy, looks: list[tuple[ServiceCondition, EpisodeContext, bool]]
) -> None:
    acts = [act for act, _ in play(speaking, looks) if act is not EpisodeAction.NOTHING]
    for before, after in pairwise([EpisodeAction.END, *acts]):
        if before is EpisodeAction.END:
            assert after in (EpisodeAction.OPEN, EpisodeAction.ADOPT)
        elif before is EpisodeAction.ADOPT:
            assert after in (EpisodeAction.ANNOUNCE, EpisodeAction.END)
        else:
            assert after in (EpisodeAction.REMIND, EpisodeAction.END)


@given(SPEAKING, LOOKS)
def test_an_episode_opens_after_enough_confirming_evaluations(
    speaking: AlertingPolicy, looks: list[tuple[ServiceCondition, EpisodeContext, bool]]
) -> None:
    for n, (act, _) in enumerate(play(speaking, looks)):
        if act not in (EpisodeAction.OPEN, EpisodeAction.ADOPT):
            continue
        assert speaking.owns_paging
        assert not looks[n][1].explained
        assert (act is EpisodeAction.OPEN) == (looks[n][1].reaches and not looks[n][1].spoken_for)
        # Count backwards over the evaluations, and skip unknown ones.
        row = 0
        for live, _, _ in reversed(looks[: n + 1]):
            if speaking.pages_on(live):
                row += 1
            elif live not in (ServiceCondition.UNKNOWN, ServiceCondition.EXCLUDED):
                break
        assert row >= speaking.confirm_evaluations


@given(SPEAKING, LOOKS)
def test_an_episode_ends_at_the_first_known_good_evaluation(
    speaking: AlertingPolicy, looks: list[tuple[ServiceCondition, EpisodeContext, bool]]
) -> None:
    open_ = False
    for n, (act, episode) in enumerate(play(speaking, looks)):
        live = looks[n][0]
        well = live not in (
            ServiceCondition.UNKNOWN,
            ServiceCondition.EXCLUDED,
        ) and not speaking.pages_on(live)
        assert (act is EpisodeAction.END) == (open_ and well)
        open_ = episode is not None


@given(SPEAKING, LOOKS)
def test_only_paging_owners_page_and_reminders_keep_their_interval(
    speaking: AlertingPolicy, looks: list[tuple[ServiceCondition, EpisodeContext, bool]]
) -> None:
    notified_at = None
    for n, (act, _) in enumerate(play(speaking, looks)):
        now = n * EVERY
        if act is EpisodeAction.REMIND:
            assert notified_at is not None
            assert now - notified_at >= speaking.renotify_us > 0
            assert not looks[n][2], "the episode is acknowledged"
        if act in (EpisodeAction.OPEN, EpisodeAction.ANNOUNCE):
            assert speaking.owns_paging
        if act in (EpisodeAction.OPEN, EpisodeAction.ANNOUNCE, EpisodeAction.REMIND):
            notified_at = now


@given(SPEAKING, st.integers(0, 4), LIVES)
def test_a_streak_is_at_most_the_confirmation_count(
    speaking: AlertingPolicy, streak: int, live: ServiceCondition
) -> None:
    assert 0 <= streak_after(speaking, live, streak) <= speaking.confirm_evaluations


def test_a_service_without_members_is_unknown() -> None:
    assert live_of(Policies(), []) is ServiceCondition.UNKNOWN
    assert live_of(Policies(), [("core", MemberState.MAINTENANCE)]) is ServiceCondition.EXCLUDED
    assert live_of(Policies(), [("core", MemberState.DOWN)]) is ServiceCondition.DOWN


PAGES = AlertingPolicy(True, frozenset({ServiceCondition.DOWN}), False, 1)


def test_an_outage_is_explained_if_every_down_member_has_a_cause() -> None:
    down, up = ("core", MemberState.DOWN, True), ("core", MemberState.UP, False)
    assert is_explained(Policies(), PAGES, [down, up])
    assert not is_explained(Policies(), PAGES, [down, ("core", MemberState.DOWN, False)])
    assert not is_explained(Policies(), PAGES, [up])
    assert not is_explained(Policies(), PAGES, [])


def test_an_outage_without_the_explained_members_is_not_explained() -> None:
    policies = Policies(mode=AggregationMode.ALL, missing_data=MissingData.BAD)
    members = [("core", MemberState.DOWN, True), ("core", MemberState.MISSING, False)]
    assert not is_explained(policies, PAGES, members)


def test_an_adopted_episode_is_announced_after_its_suppression() -> None:
    unannounced = Episode(announced=False, notified_at=None, taken_up=False)

    def decided(
        around: EpisodeContext, speaking: AlertingPolicy = PAGES
    ) -> tuple[EpisodeAction, NoPageReason | None]:
        step = decide(speaking, ServiceCondition.DOWN, 1, unannounced, around, Instant(0))
        return step.act, step.quiet

    assert decided(EpisodeContext()) == (EpisodeAction.ANNOUNCE, None)
    assert decided(EpisodeContext(spoken_for=True)) == (EpisodeAction.NOTHING, NoPageReason.ADOPTED)
    assert decided(EpisodeContext(explained=True)) == (EpisodeAction.NOTHING, NoPageReason.HELD)
    assert decided(EpisodeContext(silenced=True)) == (EpisodeAction.NOTHING, NoPageReason.SILENCED)
    assert decided(EpisodeContext(closed=True)) == (EpisodeAction.NOTHING, NoPageReason.CLOSED)
    assert decided(EpisodeContext(reaches=False)) == (EpisodeAction.NOTHING, NoPageReason.UNREACHED)
    owns_nothing = AlertingPolicy(False, frozenset({ServiceCondition.DOWN}), False, 1)
    assert decided(EpisodeContext(), owns_nothing) == (EpisodeAction.NOTHING, None)


def test_a_service_without_a_reachable_channel_is_unreached() -> None:
    step = decide(PAGES, ServiceCondition.DOWN, 0, None, EpisodeContext(reaches=False), Instant(0))
    assert (step.act, step.quiet) == (EpisodeAction.ADOPT, NoPageReason.UNREACHED)


def test_outside_the_support_hours_an_episode_opens_without_a_page() -> None:
    closed = EpisodeContext(closed=True)
    step = decide(PAGES, ServiceCondition.DOWN, 0, None, closed, Instant(0))
    assert (step.act, step.quiet) == (EpisodeAction.ADOPT, NoPageReason.CLOSED)
    reminds = AlertingPolicy(
        True, frozenset({ServiceCondition.DOWN}), False, 1, renotify_us=60_000_000
    )
    told = Episode(announced=True, notified_at=Instant(1), taken_up=False)
    late = Instant(120_000_000)
    step = decide(reminds, ServiceCondition.DOWN, 1, told, closed, late)
    assert (step.act, step.quiet) == (EpisodeAction.NOTHING, NoPageReason.CLOSED)
    step = decide(reminds, ServiceCondition.DOWN, 1, told, EpisodeContext(), late)
    assert step.act is EpisodeAction.REMIND
