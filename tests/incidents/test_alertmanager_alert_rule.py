"""An alert's fingerprint has one open incident at most, and its words always fit."""

from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.incidents.rules.alertmanager_alert import (
    Alert,
    AlertAction,
    decide_action,
    key_fault,
    read_alert,
)
from leadline.storage.incidents.rules.incident import IncidentImpact, body_fault, title_fault

NOW = Instant(1_800_000_000 * SECOND)
INSTANTS = st.one_of(st.none(), st.integers(-(10**17), 2 * NOW), st.integers(NOW - 5, NOW + 5)).map(
    lambda us: None if us is None else Instant(us)
)
TEXTS = st.dictionaries(
    st.sampled_from(["summary", "description", "alertname", "severity"]),
    st.text(st.characters(codec=None), max_size=250),
)


@given(st.text(min_size=1, max_size=200), st.booleans(), TEXTS, TEXTS, INSTANTS, INSTANTS)
def test_any_payload_can_become_an_incident(
    key: str,
    firing: bool,
    labels: dict[str, str],
    annotations: dict[str, str],
    starts_at: Instant | None,
    ends_at: Instant | None,
) -> None:
    found = read_alert(key, firing, labels, annotations, starts_at, ends_at, NOW)
    assert title_fault(found.title) is None
    assert body_fault(found.body) is None
    assert 0 < found.started_at <= NOW
    if starts_at is not None and 0 < starts_at <= NOW:
        assert found.started_at == starts_at


def an_alert(firing: bool, ended_at: Instant | None) -> Alert:
    return Alert(
        key="k",
        firing=firing,
        title="t",
        body="",
        impact=IncidentImpact.NONE,
        started_at=NOW,
        ended_at=ended_at,
        labels={},
    )


@given(st.booleans(), INSTANTS, st.none() | st.integers(NOW - 5, NOW + 5).map(Instant))
def test_it_opens_what_is_not_open_and_ends_what_is_not_newer(
    firing: bool, ended_at: Instant | None, open_since: Instant | None
) -> None:
    found = decide_action(an_alert(firing, ended_at), open_since)
    if firing:
        assert found is (AlertAction.OPENS if open_since is None else AlertAction.IGNORED)
    elif open_since is None or (ended_at is not None and ended_at < open_since):
        assert found is AlertAction.IGNORED
    else:
        assert found is AlertAction.RESOLVES


def test_a_fingerprint_is_a_short_word() -> None:
    assert key_fault("a0b1c2") is None
    for bad in ("", " ", "x" * 201, "a\nb", "\ud800"):
        assert key_fault(bad) is not None, bad
