"""Evaluation of a check's conditions: directly if they are quick, else in threads.

A search releases the interpreter lock, so that it does not block the event loop from a thread.
Parsing a long document does not release it, so only one such thread runs at a time.
"""

import atexit
from collections.abc import Sequence
from functools import partial
from time import monotonic, sleep

from ..check.condition import Condition
from ..check.condition_evaluation import ProbeValues, evaluate, is_long
from ..net.egress import Egress

# RE2 aborts the process if a search returns to a finalized interpreter. At exit, abandoned searches
# get this time to end, which is more than any of them needs under load.
EXIT_SECONDS = 15.0
_under_way: set[object] = set()


async def evaluate_conditions(
    conditions: Sequence[Condition], facts: ProbeValues, reach: Egress
) -> bool:
    """Returns whether all conditions are true. Check `facts.exhausted` afterwards."""
    if not is_long(conditions, facts):
        return hold(conditions, facts)
    for condition in conditions:
        reads_document = condition.place.name == "BODY" and condition.place.path
        off_loop = reach.in_thread_alone if reads_document else reach.in_thread
        if not await off_loop(partial(_apart, condition, facts)):
            return False
    return True


def hold(conditions: Sequence[Condition], facts: ProbeValues) -> bool:
    """Returns whether all conditions are true, without a thread. For short values only."""
    return all(evaluate(condition, facts) for condition in conditions)


def _apart(condition: Condition, facts: ProbeValues) -> bool:
    mark = object()
    _under_way.add(mark)
    try:
        return evaluate(condition, facts)
    finally:
        _under_way.discard(mark)


@atexit.register
def _await_searches() -> None:
    latest = monotonic() + EXIT_SECONDS
    while _under_way and monotonic() < latest:
        sleep(0.01)
