"""Fact of a failing monitor: the failed condition, the measured and the wanted value."""

from dataclasses import dataclass

from ....probes.check.condition import BadCondition, Operator, parse
from ....storage.results.queries.results import HeartbeatRow
from ...ui.failure_help import explain_failure, is_refusal
from ...ui.formatting import count
from .last_check import class_of, where_of

_WANTED = {
    Operator.EQUAL: "{}",
    Operator.UNEQUAL: "anything but {}",
    Operator.LESS: "less than {}",
    Operator.AT_MOST: "at most {}",
    Operator.MORE: "more than {}",
    Operator.AT_LEAST: "at least {}",
    Operator.CONTAINS: "text with {}",
    Operator.MATCHES: "a match of {}",
    Operator.EXISTS: "a value",
}


@dataclass(frozen=True, slots=True)
class FailureFact:
    """`measured` is None if the value is not shown; `condition` is empty without one."""

    title: str
    where: str
    condition: str
    measured: str | None
    expected: str
    failure: str
    streak: str


def failure_fact(last: HeartbeatRow | None, kind: str, in_a_row: int) -> FailureFact | None:
    """Returns the fact of the last check, None if it was up."""
    if last is None or last.up:
        return None
    failure = class_of(last)
    explained = explain_failure(failure) or failure.replace("_", " ")
    title = explained.rstrip(".")
    streak = count(in_a_row, "consecutive failure") if in_a_row else ""
    failed = last.failed
    where = "" if is_refusal(failure) else where_of(last, kind)
    if failed is None:
        return FailureFact(title, where, "", None, "", failure, streak)
    wanted = expected(failed.condition)
    return FailureFact(title, where, failed.condition, failed.measured, wanted, failure, streak)


def expected(text: str) -> str:
    """Returns what the condition wants in words, empty for a condition of another version."""
    try:
        condition = parse(text)
    except BadCondition:
        return ""
    literal = condition.literal.text if condition.literal is not None else ""
    return _WANTED[condition.operator].format(literal)
