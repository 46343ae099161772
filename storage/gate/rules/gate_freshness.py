"""Validity of a decision's evidence under the policy of the decision."""

from collections.abc import Iterator

from ...core.instant import SECOND, Instant
from .gate_evidence import LATCH_US, GateFacts, WindowFacts
from .gate_policy import Document, WindowMode


def looked_at(policy: Document | None, facts: GateFacts) -> list[WindowFacts]:
    """Returns the windows with an objective that the policy uses; all without a policy."""
    if policy is None or policy.window_mode is WindowMode.ALL:
        return facts.windows
    return [window for window in facts.windows if window.window == policy.window]


def fresh_until(policy: Document, facts: GateFacts) -> Instant | None:
    """Returns the earliest end of validity of any fact, None without facts.

    The instant is in the past if a fact has expired.
    """
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
