"""Whether all conditions of a check hold: at once where that is quick, in a thread where it is not.

A search lets go of the interpreter, so that in a thread it does not hold the loop.
"""

from collections.abc import Sequence
from functools import partial

from .condition import Condition
from .facts import Facts, evaluate, is_long
from .reach.outward import Reach


async def judged(conditions: Sequence[Condition], facts: Facts, reach: Reach) -> bool:
    """Look at `facts.exhausted` afterwards."""
    if is_long(conditions, facts):
        return await reach.in_thread(partial(hold, conditions, facts))
    return hold(conditions, facts)


def hold(conditions: Sequence[Condition], facts: Facts) -> bool:
    """At once; for facts that are known to be short."""
    return all(evaluate(condition, facts) for condition in conditions)
