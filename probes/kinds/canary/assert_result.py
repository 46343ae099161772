"""What is demanded of a transaction that has come to its good end: that it was quick enough, that
its result says what it must, and that what it made will be cleaned up.
"""

from typing import Final

from msgspec import UnsetType

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ...net.egress import Egress
from .json_answer import JsonAnswer
from .workflow import LifecyclePrefix, NoCleanup, ResultSpec, read_json_path

_SECOND_US: Final = 1_000_000


async def demand(result: ResultSpec, answer: JsonAnswer, took_us: int, reach: Egress) -> None:
    """Checks the assertions; raises `TargetFailure(condition_failed)` if one is false.

    `took_us` is the time from the submission to its end.
    """
    latest = result.max_latency
    if isinstance(latest, int) and took_us > latest * _SECOND_US:
        raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)
    for path in result.required_json_fields:
        if not await answer.has(read_json_path("result", path), reach):
            raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)
    if not isinstance(result.lifecycle_path, UnsetType):
        await _lifecycle(result, answer, reach)


async def demand_cleanup(
    cleanup: LifecyclePrefix | NoCleanup, result: ResultSpec, answer: JsonAnswer, reach: Egress
) -> None:
    """`TargetFailure(condition_failed)` where what was made is not of those that are cleaned up."""
    if isinstance(cleanup, NoCleanup):
        return
    if not (await _lifecycle(result, answer, reach)).startswith(cleanup.prefix):
        raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)


async def _lifecycle(result: ResultSpec, answer: JsonAnswer, reach: Egress) -> str:
    """The text at the result's lifecycle_path: without one nothing can be told of its end."""
    path = result.lifecycle_path
    found = None
    if isinstance(path, str):
        found = await answer.at(read_json_path("result.lifecycle_path", path), reach)
    if not isinstance(found, str) or not found:
        raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)
    return found
