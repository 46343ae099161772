"""Whether all conditions of a check hold: at once where that is quick, in threads where it is not.

A search lets go of the interpreter, so that in a thread it does not hold the loop. Reading a long
document does not: of those there is one at a time.
"""

import atexit
from collections.abc import Sequence
from functools import partial
from time import monotonic, sleep

from ..check.condition import Condition
from ..check.condition_evaluation import ProbeValues, evaluate, is_long
from ..net.egress import Egress

# RE2 aborts the process where a search comes back to an interpreter that has ended; one that was
# left alone is waited for so long, which is more than any of them may take where others work too.
EXIT_SECONDS = 15.0
_under_way: set[object] = set()


async def evaluate_conditions(
    conditions: Sequence[Condition], facts: ProbeValues, reach: Egress
) -> bool:
    """Look at `facts.exhausted` afterwards."""
    if not is_long(conditions, facts):
        return hold(conditions, facts)
    for condition in conditions:
        reads_document = condition.place.name == "BODY" and condition.place.path
        off_loop = reach.in_thread_alone if reads_document else reach.in_thread
        if not await off_loop(partial(_apart, condition, facts)):
            return False
    return True


def hold(conditions: Sequence[Condition], facts: ProbeValues) -> bool:
    """At once; for facts that are known to be short."""
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
