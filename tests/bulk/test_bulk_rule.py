"""The undo of an action, and what it needs."""

import pytest

from leadline.storage.bulk.rules import ARGUMENTS, UNDO, BulkAct

pytestmark = pytest.mark.rule


@pytest.mark.parametrize("act", list(UNDO))
def test_an_undo_needs_no_value_that_its_action_did_not_need(act: BulkAct) -> None:
    assert set(ARGUMENTS.get(UNDO[act], ())) <= set(ARGUMENTS.get(act, ()))


@pytest.mark.parametrize("act", [act for act in UNDO if act is not BulkAct.MAINTAIN])
def test_the_undo_of_an_undo_is_the_action(act: BulkAct) -> None:
    assert UNDO[UNDO[act]] is act


def test_only_a_deletion_and_an_end_have_no_undo() -> None:
    assert set(BulkAct) - set(UNDO) == {BulkAct.DELETE, BulkAct.END}
