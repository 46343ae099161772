"""Revisions of a service, each with a description of its changes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ....storage.core.instant import MINUTE
from ....storage.services.rules.epoch import Revision
from ....storage.services.rules.service_health import Policies
from ....storage.services.rules.service_report import ReportWindow
from ...ui.data_table import exact
from ...ui.formatting import NOTHING, count, coverage, percent
from ...ui.reliability_text import ReliabilityText
from .member_table import policy_words
from .service_data import ServiceFacts

SHOWN_MOST = 20
SEGMENTS_MOST = 40
NAMED_MOST = 5


@dataclass(frozen=True, slots=True)
class RevisionItem:
    name: str
    from_: str
    by: str
    what: str


@dataclass(frozen=True, slots=True)
class SegmentItem:
    name: str
    from_: str
    to: str
    availability: ReliabilityText
    is_reconstruction: bool


def revision_lines(facts: ServiceFacts) -> list[RevisionItem]:
    """Returns the revisions, newest first."""
    labels = {noted.revision: noted.label for noted in facts.noted}
    found = []
    for n, revision in enumerate(facts.revisions):
        before = facts.revisions[n - 1] if n else None
        now = ", now" if revision.revision == facts.health.revision else ""
        if revision.effective_at > facts.now:
            now = ", next minute"
        found.append(
            RevisionItem(
                f"{revision.revision}{now}",
                exact(revision.effective_at),
                labels.get(revision.revision, ""),
                changed(before, revision, facts.names),
            )
        )
    return found[: -SHOWN_MOST - 1 : -1]


def changed(before: Revision | None, after: Revision, names: Mapping[int, str]) -> str:
    if before is None:
        many = count(len(after.monitors), "member")
        deciding = f"{len(after.sli)} in the SLI" if after.sli else "none in the SLI"
        past = ", with backfilled history" if after.governs_from < after.effective_at else ""
        return f"{many}, {deciding}{past}"
    parts = []
    for word, one, other in (
        ("joins", after.monitors, before.monitors),
        ("leaves", before.monitors, after.monitors),
    ):
        moved = [member for member in one if member not in other]
        parts += _segment_text(moved, names, word)
    both = set(before.monitors) & set(after.monitors)
    parts += _segment_text(
        [m for m in after.sli if m in both - set(before.sli)], names, "added to SLI"
    )
    parts += _segment_text(
        [m for m in before.sli if m in both - set(after.sli)], names, "removed from SLI"
    )
    if before.policies != after.policies:
        parts.append(_policies(before.policies, after.policies))
    return "; ".join(parts) or "order of members"


def _segment_text(moved: Sequence[int], names: Mapping[int, str], word: str) -> list[str]:
    told = [f"{names.get(member, 'a deleted monitor')} {word}" for member in moved[:NAMED_MOST]]
    further = len(moved) - NAMED_MOST
    return [*told, f"{further} more {word}"] if further > 0 else told


def _policies(before: Policies, after: Policies) -> str:
    now, was = policy_words(after, 1), policy_words(before, 1)
    if now == was:
        return "freshness"
    sentences = [one for one in now.split(". ") if one not in was.split(". ")]
    return ". ".join(sentences).rstrip(".")


def segment_lines(window: ReportWindow) -> list[SegmentItem]:
    """Returns the newest segments, newest first."""
    found = []
    for segment in list(window.segments)[: -SEGMENTS_MOST - 1 : -1]:
        split = segment.durations.split
        ratio = split.availability()
        note = f"coverage {coverage(split.coverage())}"
        told = (
            ReliabilityText(NOTHING, "not measured", withheld=True)
            if ratio is None
            else ReliabilityText(percent(ratio, split.measured_us // MINUTE), note)
        )
        found.append(
            SegmentItem(
                f"Revision {segment.revision}, epoch {segment.epoch}",
                exact(segment.from_),
                exact(segment.to),
                told,
                segment.is_reconstruction,
            )
        )
    return found
