"""The decision whether a service or its monitor pages for an outage, compared with a table of the
conditions that a service needs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.alerting.rules.alert_episode import AlertingPolicy, ServiceCondition
from leadline.storage.alerting.rules.paging_delegation import (
    DELIVERED_WITHIN_US,
    TOLERATED_US,
    Delegated,
    EpisodeLatch,
    FailOpen,
    Owner,
    PagingSignal,
    RouteState,
    SignalReason,
    decide_burn_paging,
    decide_paging,
    why_not,
    why_unheard,
)
from leadline.storage.core.instant import HOUR, SECOND, Instant
from leadline.storage.core.key import ServiceKey

NOW = Instant(1_000_000 * SECOND)
JUST = Instant(NOW - 10 * SECOND)
LONG_AGO = Instant(NOW - HOUR)
SPEAKING = AlertingPolicy(True, frozenset({ServiceCondition.DOWN}), False, 2)
LIVE = PagingSignal(
    evaluated_at=Instant(NOW - 5 * SECOND),
    generation=3,
    failed=False,
    lease_holds=True,
    revision=7,
    state=ServiceCondition.DOWN,
)
BURN = replace(LIVE, revision=None, state=None)
ABLE = Owner(
    key=ServiceKey((1, 1)),
    revision=7,
    governs_from=LONG_AGO,
    speaking=SPEAKING,
    reach=RouteState.SOMEBODY,
    generation=3,
    edited_at=LONG_AGO,
    live=LIVE,
    burn=BURN,
    burns=True,
)
HEARD = EpisodeLatch(
    announced=True, has_incident=True, notified_at=JUST, is_due=False, heard=True, dead=False
)
OPEN = replace(HEARD, heard=False)


def live(**given_: Any) -> Owner:
    return replace(ABLE, live=replace(LIVE, **given_))


# Each reason with the single change that causes it, for an outage known for ten seconds.
BROKEN: dict[SignalReason, list[Owner]] = {
    SignalReason.NO_GOVERNING_REVISION: [replace(ABLE, revision=None)],
    SignalReason.POLICY_PAGES_NOTHING: [
        replace(ABLE, speaking=replace(SPEAKING, page_on=frozenset())),
        replace(ABLE, reach=RouteState.UNNAMED),
    ],
    SignalReason.STATE_NOT_PAGEABLE: [
        live(state=ServiceCondition.DEGRADED),
        live(state=ServiceCondition.UNKNOWN),
    ],
    SignalReason.NEVER_EVALUATED: [live(evaluated_at=None, state=None, lease_holds=False)],
    SignalReason.GENERATION_CHANGED: [
        live(generation=2),
        replace(live(generation=2, lease_holds=False), edited_at=JUST),
    ],
    SignalReason.REVISION_CHANGED: [
        live(revision=6),
        replace(live(revision=6, lease_holds=False), governs_from=JUST),
    ],
    SignalReason.EVALUATION_ERROR: [live(failed=True)],
    SignalReason.STALE_LEASE: [live(lease_holds=False)],
    SignalReason.NO_ENABLED_TARGET: [replace(ABLE, reach=RouteState.DISABLED)],
    SignalReason.HELD: [live(held=True)],
    SignalReason.UNROUTABLE: [replace(ABLE, reach=RouteState.NOBODY)],
    SignalReason.ONSET_UNDELIVERED: [
        replace(ABLE, latch=replace(OPEN, dead=True)),
        replace(ABLE, latch=replace(OPEN, notified_at=Instant(NOW - DELIVERED_WITHIN_US))),
    ],
    SignalReason.LATCH_INCONSISTENT: [
        replace(ABLE, latch=replace(OPEN, has_incident=False)),
        replace(ABLE, latch=replace(OPEN, notified_at=None)),
    ],
}


@pytest.mark.parametrize(
    ("reason", "owner"), [(reason, owner) for reason, found in BROKEN.items() for owner in found]
)
def test_each_missing_condition_fails_open_with_its_reason(
    reason: SignalReason, owner: Owner
) -> None:
    assert decide_paging([owner], JUST, NOW, is_steady=True) == FailOpen(reason, ABLE.key)


def test_every_reason_occurs() -> None:
    elsewhere = {
        SignalReason.NO_OWNING_SERVICE,
        SignalReason.RULE_UNEVALUATED,
        SignalReason.ONSET_PENDING,
    }
    assert set(BROKEN) | elsewhere == set(SignalReason)


def test_a_monitor_without_an_owning_service_pages_itself() -> None:
    assert decide_paging([], JUST, NOW, is_steady=True) == FailOpen(SignalReason.NO_OWNING_SERVICE)


@given(st.lists(st.sampled_from([ABLE, *(o for found in BROKEN.values() for o in found)])))
def test_a_monitor_delegates_while_any_of_its_services_can_page(
    owners: list[Owner],
) -> None:
    numbered = [replace(owner, key=ServiceKey((1, n))) for n, owner in enumerate(owners)]
    able = tuple(o.key for o in numbered if replace(o, key=ABLE.key) == ABLE)
    verdict = decide_paging(numbered, JUST, NOW, is_steady=True)
    assert verdict == Delegated(able) if able else isinstance(verdict, FailOpen)


def _first(owner: Owner) -> SignalReason | None:
    return why_not(owner, NOW, JUST, is_steady=True)


Breaks = Callable[[Owner], Owner]
BREAKS: dict[SignalReason, Breaks] = {
    SignalReason.NO_GOVERNING_REVISION: lambda o: replace(o, revision=None),
    SignalReason.POLICY_PAGES_NOTHING: lambda o: replace(
        o, speaking=replace(o.speaking, page_on=frozenset())
    ),
    SignalReason.GENERATION_CHANGED: lambda o: replace(o, generation=9),
    SignalReason.REVISION_CHANGED: lambda o: replace(o, live=replace(o.live, revision=1)),
    SignalReason.EVALUATION_ERROR: lambda o: replace(o, live=replace(o.live, failed=True)),
    SignalReason.STALE_LEASE: lambda o: replace(o, live=replace(o.live, lease_holds=False)),
    SignalReason.NO_ENABLED_TARGET: lambda o: replace(o, reach=RouteState.DISABLED),
    SignalReason.HELD: lambda o: replace(o, live=replace(o.live, held=True)),
    SignalReason.LATCH_INCONSISTENT: lambda o: replace(o, latch=replace(OPEN, has_incident=False)),
}


@given(st.sets(st.sampled_from(list(BREAKS)), min_size=1))
def test_the_first_of_several_reasons_is_reported(broken: set[SignalReason]) -> None:
    order = list(BREAKS)
    owner = ABLE
    for reason in sorted(broken, key=order.index):
        owner = BREAKS[reason](owner)
    first = min(broken, key=order.index)
    # A service that pages on no state is not checked for a state that it pages on: that check is
    # later.
    assert _first(owner) is first


def test_an_edit_is_tolerated_for_two_evaluations_under_a_lease() -> None:
    for owner in (
        replace(live(revision=6), governs_from=JUST),
        replace(live(generation=2), edited_at=JUST),
    ):
        assert decide_paging([owner], JUST, NOW, is_steady=True) == Delegated((ABLE.key,))
        later = Instant(JUST + TOLERATED_US)
        assert isinstance(decide_paging([owner], JUST, later, is_steady=True), FailOpen)


def test_an_unsteady_process_does_not_judge_leases() -> None:
    owner = live(lease_holds=False, revision=6, generation=1)
    assert decide_paging([owner], LONG_AGO, NOW, is_steady=False) == Delegated((ABLE.key,))


@pytest.mark.parametrize("state", [ServiceCondition.DOWN, ServiceCondition.EXCLUDED])
def test_a_service_that_does_not_page_in_time_fails_open(
    state: ServiceCondition,
) -> None:
    owner = live(state=state)
    bound = (SPEAKING.confirm_evaluations + 2) * 30 * SECOND
    known_at = Instant(NOW - bound)
    pending = FailOpen(SignalReason.ONSET_PENDING, ABLE.key)
    assert decide_paging([owner], known_at, NOW, is_steady=True) == pending
    assert decide_paging([owner], Instant(known_at + 1), NOW, is_steady=True) == Delegated(
        (ABLE.key,)
    )
    assert decide_paging([owner], known_at, NOW, is_steady=False) == Delegated((ABLE.key,))
    spoken = replace(owner, latch=HEARD)
    assert decide_paging([spoken], known_at, NOW, is_steady=True) == Delegated((ABLE.key,))


def test_a_healthy_service_tolerates_the_outage() -> None:
    assert decide_paging(
        [live(state=ServiceCondition.HEALTHY)], LONG_AGO, NOW, is_steady=True
    ) == Delegated((ABLE.key,))
    # The evaluation must be later than the outage.
    stale = live(state=ServiceCondition.HEALTHY, evaluated_at=Instant(LONG_AGO - 1))
    assert decide_paging([stale], LONG_AGO, NOW, is_steady=True) == FailOpen(
        SignalReason.ONSET_PENDING, ABLE.key
    )


def test_an_evaluation_before_the_outage_does_not_count() -> None:
    owner = live(state=ServiceCondition.DEGRADED, evaluated_at=Instant(JUST - 1))
    assert decide_paging([owner], JUST, NOW, is_steady=True) == Delegated((ABLE.key,))


def test_a_page_that_its_escalation_still_owes_is_awaited() -> None:
    assert why_unheard(replace(OPEN, notified_at=None, is_due=True), NOW) is None
    assert why_unheard(OPEN, NOW) is None
    assert why_unheard(replace(OPEN, announced=False, has_incident=False), NOW) is None


@pytest.mark.parametrize(
    ("owner", "reason"),
    [
        (replace(ABLE, burn=replace(BURN, undecided=True)), SignalReason.RULE_UNEVALUATED),
        (replace(ABLE, burn=replace(BURN, lease_holds=False)), SignalReason.STALE_LEASE),
        (replace(ABLE, burn=replace(BURN, failed=True)), SignalReason.EVALUATION_ERROR),
        (replace(ABLE, burn=replace(BURN, evaluated_at=None)), SignalReason.NEVER_EVALUATED),
        (replace(ABLE, burns=False), SignalReason.POLICY_PAGES_NOTHING),
        (replace(ABLE, reach=RouteState.DISABLED), SignalReason.NO_ENABLED_TARGET),
        (replace(ABLE, reach=RouteState.NOBODY), SignalReason.UNROUTABLE),
        (replace(ABLE, revision=None), SignalReason.NO_GOVERNING_REVISION),
    ],
)
def test_burn_paging_fails_open_with_its_reason(owner: Owner, reason: SignalReason) -> None:
    assert decide_burn_paging([ABLE], NOW, is_steady=True) == Delegated((ABLE.key,))
    assert decide_burn_paging([owner], NOW, is_steady=True) == FailOpen(reason, ABLE.key)
