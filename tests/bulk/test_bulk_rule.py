"""The undo of an action, and what it needs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.bulk.rules import ARGUMENTS, UNDO, BulkAct, argument_fault
from leadline.storage.core.instant import DAY, HOUR, Instant, to_text

pytestmark = pytest.mark.rule


@pytest.mark.parametrize("act", list(UNDO))
def test_an_undo_needs_no_value_that_its_action_did_not_need(act: BulkAct) -> None:
    assert set(ARGUMENTS.get(UNDO[act], ())) <= set(ARGUMENTS.get(act, ()))


@pytest.mark.parametrize("act", [act for act in UNDO if act is not BulkAct.MAINTAIN])
def test_the_undo_of_an_undo_is_the_action(act: BulkAct) -> None:
    assert UNDO[UNDO[act]] is act


def test_only_a_deletion_and_an_end_have_no_undo() -> None:
    assert set(BulkAct) - set(UNDO) == {BulkAct.DELETE, BulkAct.END}


def test_every_action_refuses_the_absence_of_what_it_needs() -> None:
    now = Instant(10 * DAY)
    needing = {act for act in BulkAct if argument_fault(act, {}, now) is not None}
    assert needing == {act for act in BulkAct if ARGUMENTS.get(act)}


@given(
    st.integers(-3, 3), st.integers(-3, 6), st.booleans(), st.booleans(), st.sampled_from([0, 5])
)
def test_a_valid_maintenance_lies_ahead(
    start_h: int, end_h: int, has_start: bool, has_end: bool, minutes: int
) -> None:
    now = Instant(10 * DAY)
    values = {"minutes": str(minutes)} if minutes else {}
    values |= {"starts_at": to_text(Instant(now + start_h * HOUR))} if has_start else {}
    values |= {"ends_at": to_text(Instant(now + end_h * HOUR))} if has_end else {}
    fault = argument_fault(BulkAct.MAINTAIN, values, now)
    by_minutes = bool(minutes) and not has_start and not has_end
    planned = has_start and has_end and not minutes and 0 <= start_h < end_h
    assert (fault is None) is (by_minutes or planned), (values, fault)
    assert fault is None or fault[0] in ("minutes", "starts_at", "ends_at")
