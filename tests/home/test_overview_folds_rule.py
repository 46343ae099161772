"""Folded groups of the overview: each monitor is counted once, and the worst are listed."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from leadline.http.home.console.overview_folds import (
    FINE,
    GROUPS_MOST,
    OPEN_MOST,
    ROWS_MOST,
    ROWS_OF_GROUP,
    folds,
    grouped,
    listed,
)
from leadline.http.ui.monitor_status import MonitorStatusText


def monitor(n: int, tag: str, region: str, state: MonitorStatusText) -> Any:
    return SimpleNamespace(row=SimpleNamespace(uid=n, region=region), group=tag, state=state)


watched = st.lists(
    st.tuples(
        st.sampled_from(["", "Shop", "shop", "Checkout", *(f"g{n}" for n in range(80))]),
        st.sampled_from(["core", "eu"]),
        st.sampled_from(MonitorStatusText),
    ),
    max_size=300,
).map(lambda found: [monitor(n, *one) for n, one in enumerate(found)])


@given(watched, st.booleans())
def test_each_monitor_is_in_one_group_and_the_worst_are_listed(
    items: list[Any], by_region: bool
) -> None:
    groups = grouped(items, by_region=by_region)
    assert Counter(item.row.uid for group in groups for item in group.items) == Counter(
        range(len(items))
    )
    assert len(listed(groups)) <= ROWS_MOST
    order = list(MonitorStatusText)
    for group in groups:
        bad = [item for item in group.items if item.state not in FINE]
        assert len(group.listed) + group.more == len(bad)
        assert len(group.listed) <= ROWS_OF_GROUP
        worst = [order.index(item.state) for item in group.listed]
        assert worst == sorted(worst)
        if group.listed and group.more:
            rest = [item for item in bad if item not in group.listed]
            assert max(worst) <= min(order.index(item.state) for item in rest)


@given(watched, st.booleans())
def test_folds_show_the_worst_status_and_open_at_most_five(
    items: list[Any], by_region: bool
) -> None:
    groups = grouped(items, by_region=by_region)
    drawn: Any = {str(item.row.uid): item for item in items}
    shown = folds(groups, drawn, "/monitors", by_region=by_region)
    assert len(shown.folds) == min(len(groups), GROUPS_MOST)
    assert len(shown.folds) + shown.further == len(groups)
    assert sum(fold.is_open for fold in shown.folds) <= OPEN_MOST
    assert len({fold.id for fold in shown.folds}) == len(shown.folds)
    for fold, group in zip(shown.folds, groups, strict=False):
        states = {item.state for item in group.items}
        assert fold.mark == min(states, key=list(MonitorStatusText).index)
        assert fold.is_open <= (MonitorStatusText.DOWN in states)
        assert fold.share.count("<rect") == len(states)


def test_a_group_without_a_tag_is_last_and_links_to_all_monitors() -> None:
    up = MonitorStatusText.UP
    groups = grouped([monitor(1, "", "core", up), monitor(2, "B & C", "core", up)], by_region=False)
    shown = folds(groups, {}, "/monitors", by_region=False).folds
    assert [(fold.name, fold.path, fold.note) for fold in shown] == [
        ("B & C", "/monitors?tag=B+%26+C", "1 monitor, up"),
        ("", "/monitors", "1 monitor, up"),
    ]
