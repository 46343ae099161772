"""What one attempt saw of its target, before anyone judges it."""

from dataclasses import dataclass

from .condition_evaluation import ProbeValues
from .result import FailureClass


@dataclass(slots=True)
class Observation:
    """`failure` is the kind's own verdict, which counts where the check has no conditions.

    `cert_ends_at` is µs since the epoch; the runner, which has the clock, makes the time left.
    Where the check has no conditions, less of it than `cert_left_us_least` is `tls_expiring`.
    `took_us` is what the target took, where that is not all of the time that the attempt took.
    """

    facts: ProbeValues
    code: int | None = None
    failure: FailureClass | None = None
    cert_ends_at: int | None = None
    cert_left_us_least: int | None = None
    took_us: int | None = None
