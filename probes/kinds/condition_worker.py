"""Evaluation of a check's conditions: directly if they are quick, else in threads.

A search releases the interpreter lock, so that it does not block the event loop from a thread.
Parsing a long document does not release it, so only one such thread runs at a time.
"""

import atexit
from collections.abc import Callable, Sequence
from functools import partial
from time import monotonic, sleep
from typing import TypeVar

from ..check.check import Check
from ..check.condition import Condition
from ..check.condition_evaluation import ProbeValues, evaluate, is_long
from ..check.measured_value import measured_value
from ..net.egress import Egress

# RE2 aborts the process if a search returns to a finalized interpreter. At exit, abandoned searches
# get this time to end, which is more than any of them needs under load.
EXIT_SECONDS = 15.0
_under_way: set[object] = set()

T = TypeVar("T")


async def evaluate_conditions(
    conditions: Sequence[Condition], facts: ProbeValues, reach: Egress
) -> bool:
    """Returns whether all conditions are true. Check `facts.exhausted` afterwards."""
    return await first_false(conditions, facts, reach) is None


async def first_false(
    conditions: Sequence[Condition], facts: ProbeValues, reach: Egress
) -> Condition | None:
    """Returns the first false condition, None if all are true.

    Check `facts.exhausted` afterwards.
    """
    is_quick = not is_long(conditions, facts)
    for condition in conditions:
        if is_quick:
            is_true = evaluate(condition, facts)
        else:
            is_true = await _off_loop(condition, reach, partial(evaluate, condition, facts))
        if not is_true:
            return condition
    return None


async def measure(
    condition: Condition, facts: ProbeValues, check: Check, reach: Egress
) -> str | None:
    """Returns the text of the value that made the condition false, see `measured_value`."""
    if not is_long([condition], facts):
        return measured_value(condition, facts, check)
    work = partial(measured_value, condition, facts, check)
    return await _off_loop(condition, reach, work)


def hold(conditions: Sequence[Condition], facts: ProbeValues) -> bool:
    """Returns whether all conditions are true, without a thread. For short values only."""
    return all(evaluate(condition, facts) for condition in conditions)


async def _off_loop(condition: Condition, reach: Egress, work: Callable[[], T]) -> T:
    reads_document = condition.place.name == "BODY" and condition.place.path
    off_loop = reach.in_thread_alone if reads_document else reach.in_thread
    return await off_loop(partial(_apart, work))


def _apart(work: Callable[[], T]) -> T:
    mark = object()
    _under_way.add(mark)
    try:
        return work()
    finally:
        _under_way.discard(mark)


@atexit.register
def _await_searches() -> None:
    latest = monotonic() + EXIT_SECONDS
    while _under_way and monotonic() < latest:
        sleep(0.01)
