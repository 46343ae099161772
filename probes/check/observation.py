"""Observation of one attempt, before its conditions are evaluated."""

from dataclasses import dataclass

from .condition_evaluation import ProbeValues
from .result import FailureClass


@dataclass(slots=True)
class Observation:
    """Observation of a target.

    `failure` is the verdict of the probe, which counts if the check has no conditions.
    `cert_ends_at` is µs since the epoch; the runner, which has the clock, computes the time left.
    Without conditions, a time left below `cert_left_us_least` is `tls_expiring`. `took_us` is the
    latency of the target if it differs from the duration of the attempt. `domain_ends_at` and
    `domain_left_us_least` are those of a domain, with `domain_expiring`.
    """

    facts: ProbeValues
    code: int | None = None
    failure: FailureClass | None = None
    cert_ends_at: int | None = None
    cert_left_us_least: int | None = None
    took_us: int | None = None
    domain_ends_at: int | None = None
    domain_left_us_least: int | None = None
