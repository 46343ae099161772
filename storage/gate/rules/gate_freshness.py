"""How long what a decision was made from goes on to count: by the policy that it was judged by."""

from collections.abc import Iterator

from ...core.instant import SECOND, Instant
from .gate_evidence import LATCH_US, GateFacts, WindowFacts
from .gate_policy import Document, WindowMode


def looked_at(policy: Document | None, facts: GateFacts) -> list[WindowFacts]:
    """The windows that the policy looks at, of those that have an objective; all without one."""
    if policy is None or policy.window_mode is WindowMode.ALL:
        return facts.windows
    return [window for window in facts.windows if window.window == policy.window]


def fresh_until(policy: Document, facts: GateFacts) -> Instant | None:
    """The last instant at which all still counts that counted, or of those that have stopped the
    first; None where nothing was ever seen."""
    return min(_ends(policy, facts), default=None)


def _ends(policy: Document, facts: GateFacts) -> Iterator[Instant]:
    bound_us = policy.max_seal_lag_seconds * SECOND
    if facts.sealed_through is not None:
        yield Instant(facts.sealed_through + bound_us)
    if facts.live.evaluated_at is not None:
        yield Instant(facts.live.evaluated_at + LATCH_US)
    for window in looked_at(policy, facts):
        if window.repair_since is not None:
            yield Instant(window.repair_since + bound_us)
        for rule in window.rules if window.burn_enabled else ():
            if rule.evaluated_at is not None:
                yield Instant(rule.evaluated_at + LATCH_US)
