"""An incident goes forward and ends; notes are always taken; texts of others always fit.

The model is the interface's: a list of the four statuses, and places in it.
"""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.incidents.rules.incident import (
    BODY_LONGEST,
    TITLE_LONGEST,
    IncidentImpact,
    IncidentStatus,
    body_fault,
    impact_of_severity,
    is_empty_update,
    is_public,
    many_lines,
    normal_lines,
    one_line,
    status_refusal,
    statuses_from,
    title_fault,
)

ORDER = ["investigating", "identified", "monitoring", "resolved"]
PAIRS = [(before, given) for before in IncidentStatus for given in [None, *IncidentStatus]]


@pytest.mark.parametrize(("before", "given"), PAIRS)
def test_every_pair_of_statuses(before: IncidentStatus, given: IncidentStatus | None) -> None:
    found = status_refusal(before, given)
    if given is None:
        assert found is None
    elif before == "resolved":
        assert found == "incident_resolved"
    elif ORDER.index(given) < ORDER.index(before):
        assert found == "status_backward"
    else:
        assert found is None


def test_the_statuses_are_those_and_in_that_order() -> None:
    assert [status.value for status in IncidentStatus] == ORDER


@given(st.lists(st.sampled_from([None, *IncidentStatus])))
def test_an_incident_never_moves_back_and_is_resolved_once(
    tried: list[IncidentStatus | None],
) -> None:
    status, history = IncidentStatus.INVESTIGATING, [0]
    for one in tried:
        if status_refusal(status, one) is None and one is not None:
            status = one
            history.append(ORDER.index(one))
    assert history == sorted(history)
    assert history.count(3) <= 1
    assert 3 not in history[:-1]


@pytest.mark.parametrize("present", IncidentStatus)
def test_the_offered_statuses_are_the_accepted_ones(present: IncidentStatus) -> None:
    offered = statuses_from(present)
    assert offered == [s for s in IncidentStatus if status_refusal(present, s) is None]
    if present is not IncidentStatus.RESOLVED:
        assert offered[0] is present
        assert offered[-1] is IncidentStatus.RESOLVED


@pytest.mark.parametrize(
    ("status", "wish", "public"),
    [
        (IncidentStatus.IDENTIFIED, None, True),
        (None, None, False),
        (IncidentStatus.RESOLVED, False, False),
        (None, True, True),
    ],
)
def test_a_note_is_internal_unless_it_is_published(
    status: IncidentStatus | None, wish: bool | None, public: bool
) -> None:
    assert is_public(status, wish) is public


@pytest.mark.parametrize(
    ("given", "body", "nothing"),
    [
        (None, "", True),
        (None, " \n", True),
        (None, "x", False),
        (IncidentStatus.IDENTIFIED, "", True),
        (IncidentStatus.IDENTIFIED, "x", False),
        (IncidentStatus.MONITORING, "", False),
    ],
)
def test_an_update_needs_a_new_status_or_a_body(
    given: IncidentStatus | None, body: str, nothing: bool
) -> None:
    assert is_empty_update(IncidentStatus.IDENTIFIED, given, body) is nothing


@pytest.mark.parametrize(
    ("severity", "impact"),
    [
        ("critical", "critical"),
        ("error", "major"),
        ("page", "major"),
        ("warning", "minor"),
        ("Critical", "critical"),
        ("info", "none"),
        ("", "none"),
    ],
)
def test_the_severity_of_an_alert_gives_the_impact(severity: str, impact: str) -> None:
    assert impact_of_severity(severity) == IncidentImpact(impact)


def broken(text: str, allowed: str = "") -> bool:
    return any((ord(c) < 32 or 127 <= ord(c) < 160) and c not in allowed for c in text)


ANYTHING = st.text(st.characters(codec=None), max_size=300) | st.text(
    "ab \t\r\n\x00\x85\ud800é", max_size=300
)


@given(ANYTHING)
def test_a_title_is_a_line_of_200_code_points(text: str) -> None:
    surrogate = any("\ud800" <= c <= "\udfff" for c in text)
    good = bool(text.strip()) and len(text) <= 200 and not broken(text) and not surrogate
    assert (title_fault(text) is None) is good


@given(ANYTHING)
def test_a_body_has_lines_and_tabs_and_no_other_control_characters(text: str) -> None:
    surrogate = any("\ud800" <= c <= "\udfff" for c in text)
    assert (body_fault(text) is None) is (not broken(text, "\n\t") and not surrogate)


@pytest.mark.parametrize(("over", "good"), [(0, True), (1, False)])
def test_the_bounds_count_code_points(over: int, good: bool) -> None:
    assert (title_fault("é" * (TITLE_LONGEST + over)) is None) is good
    assert (body_fault("é" * (BODY_LONGEST + over)) is None) is good
    assert (body_fault("é" * (50 + over), 50) is None) is good


@given(ANYTHING, st.integers(1, 40))
def test_a_foreign_text_is_shortened_to_fit(text: str, longest: int) -> None:
    line, lines = one_line(text, longest), many_lines(text, longest)
    assert body_fault(lines, longest) is None
    assert len(line) <= longest
    assert not line or title_fault(line) is None


@given(st.text(string.ascii_letters + " ", max_size=60))
def test_a_fitting_text_is_unchanged(text: str) -> None:
    assert one_line(text) == " ".join(text.split())
    assert many_lines(text) == text.strip()


def test_lines_end_as_they_do_here() -> None:
    assert normal_lines("a\r\nb\rc\nd") == "a\nb\nc\nd"
    assert many_lines("a\r\nb\r") == "a\nb"
    assert one_line("a\r\nb") == "a b"
