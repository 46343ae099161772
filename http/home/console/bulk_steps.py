"""Steps of an action on many monitors. A browser with scripts sends one form for each step.

Between the steps the screen shows the progress. The form carries what earlier steps did, so that
the result covers the whole action. Without scripts one request does everything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import msgspec

from ....storage.core.instant import SECOND, Instant
from ....storage.core.refusal import Refused
from ...monitors.console.project_statuses import MonitorData
from ...ui.form_values import value_of, whole_number
from ...ui.formatting import duration
from ...wire.errors import Problem
from ...wire.route import Request
from .monitor_bulk import BULK_MOST, FAILURES_SHOWN, BulkOutcome

# A smaller selection is done in one step.
SHOWN_ABOVE: Final = 20
# Monitors of one step: about 0.2 s.
STEP_MOST: Final = 50
_REASON_LONGEST: Final = 2_000


@dataclass(frozen=True, slots=True)
class BulkProgress:
    """What earlier steps did. `began` is the instant of the first step, None before it."""

    outcome: BulkOutcome
    began: Instant | None = None

    @property
    def seen(self) -> int:
        outcome = self.outcome
        return len(outcome.done) + outcome.same + len(outcome.failures) + outcome.more_failures

    def left(self, rest: int, now: Instant) -> str:
        """Returns the time that the remaining monitors need at the speed so far.

        Empty for less than a second.
        """
        if self.began is None or not self.seen:
            return ""
        need = (now - self.began) * rest // self.seen
        return duration(need) if need >= SECOND else ""


def progress_of(ask: Request) -> BulkProgress:
    """Returns what the form carries. Raises: Problem if a field is malformed."""
    if not value_of(ask, "began"):
        return BulkProgress(BulkOutcome())
    try:
        done = [UUID(text) for text in value_of(ask, "did").split(",") if text]
        failures = msgspec.json.decode(value_of(ask, "failed"), type=list[tuple[str, str]])
        same = whole_number("same", value_of(ask, "same"))
        more = whole_number("failed_more", value_of(ask, "failed_more"))
        began = Instant(int(value_of(ask, "began")))
    except (ValueError, msgspec.MsgspecError, Refused):
        raise Problem("did: is malformed") from None
    if len(done) > BULK_MOST or len(failures) > FAILURES_SHOWN:
        raise Problem(f"did: select at most {BULK_MOST} monitors")
    cut = [(name[:_REASON_LONGEST], reason[:_REASON_LONGEST]) for name, reason in failures]
    return BulkProgress(BulkOutcome(done, cut, same=same, more_failures=more), began)


def added(before: BulkOutcome, step: BulkOutcome) -> BulkOutcome:
    """Returns both outcomes together. Of the failures, at most FAILURES_SHOWN have their reason."""
    failures = [*before.failures, *step.failures]
    return BulkOutcome(
        [*before.done, *step.done],
        failures[:FAILURES_SHOWN],
        same=before.same + step.same,
        more_failures=before.more_failures
        + step.more_failures
        + max(len(failures) - FAILURES_SHOWN, 0),
        left_out=step.left_out,
    )


def divided(
    ask: Request, chosen: Sequence[MonitorData]
) -> tuple[Sequence[MonitorData], Sequence[MonitorData]]:
    """Returns the monitors of this step and those of later steps.

    The first step of few monitors is the only one.
    """
    has_steps = bool(value_of(ask, "steps"))
    if not has_steps or (len(chosen) <= SHOWN_ABOVE and not value_of(ask, "began")):
        return chosen, ()
    return chosen[:STEP_MOST], chosen[STEP_MOST:]
