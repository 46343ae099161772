"""When a service is told of, held against a model that remembers everything it was shown."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.alert_episode import (
    Act,
    Around,
    Episode,
    Live,
    Quiet,
    Speaking,
    decide,
    is_explained,
    live_of,
    streak_after,
)
from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.services.rules.service_health import MissingData, Mode, Policies, Seen

EVERY = 30 * SECOND
LIVES = st.sampled_from(list(Live))
SPEAKING = st.builds(
    Speaking,
    owns_paging=st.booleans(),
    page_on=st.frozensets(st.sampled_from([Live.DOWN, Live.DEGRADED])),
    page_on_unknown=st.booleans(),
    confirm_evaluations=st.integers(1, 4),
    renotify_us=st.sampled_from([0, 60 * SECOND, 100 * SECOND]),
)
AROUND = st.builds(Around, explained=st.booleans(), spoken_for=st.booleans(), reaches=st.booleans())
LOOKS = st.lists(st.tuples(LIVES, AROUND, st.booleans()), max_size=40)


def play(
    speaking: Speaking, looks: list[tuple[Live, Around, bool]]
) -> list[tuple[Act, Episode | None]]:
    """What is done at each look, with the episode that is open after it."""
    episode: Episode | None = None
    streak, found = 0, []
    for n, (live, around, taken_up) in enumerate(looks):
        now = Instant(n * EVERY)
        if episode is not None:
            episode = Episode(episode.announced, episode.told_at, taken_up)
        step = decide(speaking, live, streak, episode, around, now)
        streak = step.streak
        match step.act:
            case Act.OPEN:
                episode = Episode(True, now, False)
            case Act.ADOPT:
                episode = Episode(False, None, False)
            case Act.ANNOUNCE | Act.REMIND:
                assert episode is not None
                episode = Episode(True, now, episode.taken_up)
            case Act.END:
                episode = None
        found.append((step.act, episode))
    return found


@given(SPEAKING, LOOKS)
def test_an_episode_opens_once_pages_once_and_ends_once(
    speaking: Speaking, looks: list[tuple[Live, Around, bool]]
) -> None:
    acts = [act for act, _ in play(speaking, looks) if act is not Act.NOTHING]
    for before, after in pairwise([Act.END, *acts]):
        if before is Act.END:
            assert after in (Act.OPEN, Act.ADOPT)
        elif before is Act.ADOPT:
            assert after in (Act.ANNOUNCE, Act.END)
        else:
            assert after in (Act.REMIND, Act.END)


@given(SPEAKING, LOOKS)
def test_it_opens_exactly_where_the_looks_before_it_confirm(
    speaking: Speaking, looks: list[tuple[Live, Around, bool]]
) -> None:
    for n, (act, _) in enumerate(play(speaking, looks)):
        if act not in (Act.OPEN, Act.ADOPT):
            continue
        assert speaking.owns_paging
        assert not looks[n][1].explained
        assert (act is Act.OPEN) == (looks[n][1].reaches and not looks[n][1].spoken_for)
        # Back through the looks, passing over what is not known.
        row = 0
        for live, _, _ in reversed(looks[: n + 1]):
            if speaking.pages_on(live):
                row += 1
            elif live not in (Live.UNKNOWN, Live.EXCLUDED):
                break
        assert row >= speaking.confirm_evaluations


@given(SPEAKING, LOOKS)
def test_it_ends_at_the_first_look_that_is_known_and_well(
    speaking: Speaking, looks: list[tuple[Live, Around, bool]]
) -> None:
    open_ = False
    for n, (act, episode) in enumerate(play(speaking, looks)):
        live = looks[n][0]
        well = live not in (Live.UNKNOWN, Live.EXCLUDED) and not speaking.pages_on(live)
        assert (act is Act.END) == (open_ and well)
        open_ = episode is not None


@given(SPEAKING, LOOKS)
def test_nobody_is_paged_by_whoever_owns_nothing_and_nobody_twice_within_the_reminder(
    speaking: Speaking, looks: list[tuple[Live, Around, bool]]
) -> None:
    told_at = None
    for n, (act, _) in enumerate(play(speaking, looks)):
        now = n * EVERY
        if act is Act.REMIND:
            assert told_at is not None
            assert now - told_at >= speaking.renotify_us > 0
            assert not looks[n][2], "somebody has taken it up"
        if act in (Act.OPEN, Act.ANNOUNCE):
            assert speaking.owns_paging
        if act in (Act.OPEN, Act.ANNOUNCE, Act.REMIND):
            told_at = now


@given(SPEAKING, st.integers(0, 4), LIVES)
def test_a_row_is_never_longer_than_what_confirms(
    speaking: Speaking, streak: int, live: Live
) -> None:
    assert 0 <= streak_after(speaking, live, streak) <= speaking.confirm_evaluations


def test_without_members_nothing_is_known() -> None:
    assert live_of(Policies(), []) is Live.UNKNOWN
    assert live_of(Policies(), [("core", Seen.MAINTENANCE)]) is Live.EXCLUDED
    assert live_of(Policies(), [("core", Seen.DOWN)]) is Live.DOWN


PAGES = Speaking(True, frozenset({Live.DOWN}), False, 1)


def test_trouble_is_explained_where_every_member_that_is_down_has_a_cause_of_its_own() -> None:
    down, up = ("core", Seen.DOWN, True), ("core", Seen.UP, False)
    assert is_explained(Policies(), PAGES, [down, up])
    assert not is_explained(Policies(), PAGES, [down, ("core", Seen.DOWN, False)])
    assert not is_explained(Policies(), PAGES, [up])
    assert not is_explained(Policies(), PAGES, [])


def test_what_is_down_without_them_too_is_not_explained_by_them() -> None:
    policies = Policies(mode=Mode.ALL, missing_data=MissingData.BAD)
    members = [("core", Seen.DOWN, True), ("core", Seen.MISSING, False)]
    assert not is_explained(policies, PAGES, members)


def test_an_episode_that_nobody_was_told_of_is_told_once_no_reason_holds_it() -> None:
    untold = Episode(announced=False, told_at=None, taken_up=False)

    def looked(around: Around, speaking: Speaking = PAGES) -> tuple[Act, Quiet | None]:
        step = decide(speaking, Live.DOWN, 1, untold, around, Instant(0))
        return step.act, step.quiet

    assert looked(Around()) == (Act.ANNOUNCE, None)
    assert looked(Around(spoken_for=True)) == (Act.NOTHING, Quiet.ADOPTED)
    assert looked(Around(explained=True)) == (Act.NOTHING, Quiet.HELD)
    assert looked(Around(silenced=True)) == (Act.NOTHING, Quiet.SILENCED)
    assert looked(Around(reaches=False)) == (Act.NOTHING, Quiet.UNREACHED)
    owns_nothing = Speaking(False, frozenset({Live.DOWN}), False, 1)
    assert looked(Around(), owns_nothing) == (Act.NOTHING, None)


def test_a_service_whose_page_reaches_nobody_says_so() -> None:
    step = decide(PAGES, Live.DOWN, 0, None, Around(reaches=False), Instant(0))
    assert (step.act, step.quiet) == (Act.ADOPT, Quiet.UNREACHED)
