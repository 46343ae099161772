"""Assertions on a successful transaction: latency, result fields, lifecycle value."""

from typing import Final

from msgspec import UnsetType

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ...net.egress import Egress
from .json_answer import JsonAnswer
from .workflow import LifecyclePrefix, NoCleanup, ResultSpec, read_json_path

_SECOND_US: Final = 1_000_000


async def demand(result: ResultSpec, answer: JsonAnswer, took_us: int, reach: Egress) -> None:
    """Checks the assertions. `took_us` is the time from the submission to its end.

    Raises: `TargetFailure(condition_failed)` if one is false.
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
    """Checks that the lifecycle value has the prefix that marks it for cleanup.

    Raises: `TargetFailure(condition_failed)` otherwise.
    """
    if isinstance(cleanup, NoCleanup):
        return
    if not (await _lifecycle(result, answer, reach)).startswith(cleanup.prefix):
        raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)


async def _lifecycle(result: ResultSpec, answer: JsonAnswer, reach: Egress) -> str:
    """Returns the text at the result's `lifecycle_path`.

    Raises: `TargetFailure(condition_failed)` if it is missing, empty or not a text.
    """
    path = result.lifecycle_path
    found = None
    if isinstance(path, str):
        found = await answer.at(read_json_path("result.lifecycle_path", path), reach)
    if not isinstance(found, str) or not found:
        raise TargetFailure(FailureClass.CONDITION_FAILED, answer.status)
    return found
