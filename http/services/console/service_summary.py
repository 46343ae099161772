"""First line of the service screen: whether the service is healthy, and why."""

from collections.abc import Sequence

from ....storage.services.rules.service_health import Health, MemberState
from ...ui.formatting import count
from ...ui.reliability_text import mark_of
from .member_table import policy_words
from .service_data import ServiceFacts

_NAMED_MOST = 3


def summary(facts: ServiceFacts) -> tuple[str, str]:
    """Returns (mark, sentence)."""
    name, health = facts.row.name, facts.health
    mark = mark_of(health)
    if health.revision is None:
        if facts.revisions:
            return mark, f"{name} starts at the next minute"
        return mark, f"{name} has no declaration yet"
    state = health.state
    if state is None:
        return mark, f"{name} is unknown"
    match state.health:
        case None:
            return mark, f"{name} is in maintenance"
        case Health.HEALTHY:
            return mark, f"{name} is healthy"
        case Health.DEGRADED:
            return mark, f"{name} is degraded"
        case Health.DOWN:
            return mark, f"{name} is down"
        case Health.UNKNOWN if state.condition.value == "good":
            return mark, f"{name} is up; degradation is unknown"
        case Health.UNKNOWN:
            return mark, f"{name} is unknown"


def why(facts: ServiceFacts) -> str:
    """Returns the text after the first line: the reason for the state."""
    governing = facts.governing
    if governing is None:
        if facts.revisions:
            return "Its members are measured from then on."
        return "Add members to start measuring."
    if not governing.sli:
        return "No SLI members: select the members that count toward the SLI."
    said = []
    for seen, words in (
        (MemberState.DOWN, "down"),
        (MemberState.MISSING, "unknown"),
        (MemberState.NOT_BEGUN, "not begun"),
        (MemberState.PAUSED, "paused"),
    ):
        found = [
            one.name
            for one in facts.members
            if one.id in governing.sli and facts.health.members.get(one.id) is seen
        ]
        if found:
            said.append(f"{some_names(found)} {'is' if len(found) == 1 else 'are'} {words}.")
    if not said:
        return f"{count(len(governing.sli), 'SLI member')}."
    return f"{' '.join(said)} {policy_words(governing.policies, len(governing.sli))}"


def some_names(found: Sequence[str]) -> str:
    """Returns the first names, and how many others there are."""
    if len(found) <= _NAMED_MOST:
        return " and ".join((", ".join(found[:-1]), found[-1])) if found[1:] else found[0]
    return f"{', '.join(found[:_NAMED_MOST])} and {len(found) - _NAMED_MOST} more"
