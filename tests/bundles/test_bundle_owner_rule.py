"""Owners: an export changes none, and a bundle writes only what it owns or takes over."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.bundles.rules.bundle import MonitorEntry
from leadline.storage.bundles.rules.bundle_diff import (
    API,
    BundleAction,
    BundleChange,
    FieldChange,
    counts_of,
    revision_of,
)
from leadline.storage.bundles.rules.bundle_owner import (
    DEFAULT_NAME,
    OwnerRelation,
    expect_owned,
    exported,
    exported_named,
    left_out,
    marks_of,
    match,
    match_named,
    name_fault,
    name_of,
    owner_change,
    path_of,
    relation_of,
)
from leadline.storage.core.instant import Instant
from leadline.storage.core.refusal import Refused
from leadline.storage.monitors.rules.monitor import MonitorType


@dataclass(frozen=True)
class Row:
    id: int
    slug: str
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None


@dataclass(frozen=True)
class Source:
    provider: str = API
    path: str = ""
    take_over: bool = False
    kept: frozenset[tuple[str, str]] = frozenset()


# Few words, so that slugs and uids of different objects are often equal.
WORDS = ["a", "b", "c", "a-2", "b-2"]
PATHS = ["", "shop", "jobs"]


@st.composite
def projects(draw: st.DrawFn) -> list[Row]:
    """Objects of a project: slugs are unique, and so are uids of a provider."""
    slugs = draw(st.lists(st.sampled_from(WORDS), unique=True))
    uids = {provider: draw(st.permutations(WORDS)) for provider in (API, "files")}
    rows = []
    for number, slug in enumerate(slugs):
        owner = draw(st.sampled_from(["", API, "files"]))
        if not owner:
            rows.append(Row(number, slug))
            continue
        orphaned = draw(st.sampled_from([None, Instant(1)]))
        path = draw(st.sampled_from(PATHS))
        rows.append(Row(number, slug, owner, uids[owner][number], path, orphaned))
    return rows


def entry(slug: str) -> MonitorEntry:
    return MonitorEntry(name="x", type=MonitorType.PUSH, slug=slug)


def entries_of(rows: Sequence[Row]) -> dict[str, MonitorEntry]:
    return {uid: entry(row.slug) for uid, row in exported(rows).items()}


def marked(rows: Sequence[Row], found: dict[str, Row], source: Source) -> list[UUID]:
    ids = {uid: uuid4() for uid in found}
    return [mark.uid for mark in marks_of(ids, found, {}, source, Instant(2))]


@given(projects(), st.sampled_from(PATHS))
def test_an_export_matches_its_objects_and_changes_no_owner(rows: list[Row], path: str) -> None:
    document = exported(rows)
    source = Source(path=path)
    found = match("monitors", rows, entries_of(rows), API)
    assert found == document
    assert [owner_change(row, source) for row in found.values()] == [None] * len(found)
    assert marked(rows, found, source) == []
    assert left_out("monitor", rows, document, source) == {}
    wanted = [row for row in rows if row.managed_by in ("", API) and row.orphaned_at is None]
    assert sorted(row.id for row in document.values()) == [row.id for row in wanted]


@given(projects(), st.sampled_from(PATHS), st.booleans())
def test_a_bundle_writes_only_what_it_owns_or_takes_over(
    rows: list[Row], path: str, take_over: bool
) -> None:
    source = Source(path=path, take_over=take_over)
    for row in rows:
        if row.managed_by == "files":
            continue
        own = row.managed_by == API and row.bundle_path == path
        free = row.managed_by == API and row.orphaned_at is not None
        may_write = own or free or take_over
        with nullcontext() if may_write else pytest.raises(Refused, match="take_over"):
            expect_owned("monitors.x", row, source, ["name"])
        expect_owned("monitors.x", row, source, [])
        changes = owner_change(row, source) is not None
        assert changes == (free or (take_over and not own))
        assert (relation_of(row, source) is OwnerRelation.LEFT) == (not may_write)


@given(projects(), st.sampled_from(PATHS))
def test_a_bundle_makes_no_orphan_of_another(rows: list[Row], path: str) -> None:
    for row in left_out("monitor", rows, {}, Source(path=path)).values():
        assert (row.managed_by, row.bundle_path, row.orphaned_at) == (API, path, None)


@dataclass(frozen=True)
class Named:
    id: int
    name: str
    managed_by: str = ""
    bundle_uid: str | None = None
    bundle_path: str = ""
    orphaned_at: Instant | None = None
    uid: UUID = field(default_factory=uuid4)


@st.composite
def named_objects(draw: st.DrawFn) -> list[Named]:
    """Objects of a kind whose names are not distinct, in the order of their ids."""
    rows: list[Named] = []
    for number in range(draw(st.integers(0, 6))):
        name, owner = draw(st.sampled_from(["Ops", "…", "ops 2"])), draw(st.sampled_from(OWNERS))
        if not owner:
            rows.append(Named(number, name))
            continue
        uid = draw(st.sampled_from([*WORDS, "ops", "ops-2"]))
        if all((one.managed_by, one.bundle_uid) != (owner, uid) for one in rows):
            gone = draw(st.sampled_from([None, None, Instant(7)]))
            rows.append(Named(number, name, owner, uid, draw(st.sampled_from(PATHS)), gone))
    return rows


OWNERS = ["", "", API, "git"]


@given(named_objects())
def test_an_export_matches_objects_whose_names_are_equal(rows: list[Named]) -> None:
    found = exported_named(rows, "channel")
    assert [one.id for one in found.values()] == sorted(one.id for one in found.values())
    assert all(one.managed_by in ("", API) and one.orphaned_at is None for one in found.values())
    assert (
        match_named("channels", rows, {uid: one.name for uid, one in found.items()}, API) == found
    )


@given(named_objects(), st.dictionaries(st.sampled_from(WORDS), st.sampled_from(["Ops", "x"])))
def test_entries_match_different_objects_that_the_provider_may_have(
    rows: list[Named], names: dict[str, str]
) -> None:
    try:
        found = match_named("channels", rows, names, API)
    except Refused as refused:
        if refused.code != "bundle_conflict":
            raise
        return
    assert len({one.id for one in found.values()}) == len(found)
    for uid, one in found.items():
        assert one.managed_by in ("", API)
        assert one.bundle_uid == uid if one.managed_by else one.name == names[uid]
    taken = {one.name for one in rows if not one.managed_by}
    assert not any(names[uid] in taken for uid in names.keys() - found.keys())


def test_an_entry_moves_between_the_files_of_a_provider() -> None:
    row = Row(1, "a", "files", "a", "a.yaml")
    source = Source("files", "b.yaml")
    assert relation_of(row, source) is OwnerRelation.TAKEN
    assert owner_change(row, source) is None
    assert len(marked([row], {"a": row}, source)) == 1


@pytest.mark.parametrize("name", ["shop", "Shop_2.prod-eu", "7", "a" * 63, DEFAULT_NAME])
def test_a_name_has_one_mark(name: str) -> None:
    assert name_fault(name) is None
    assert name_of(path_of(name)) == name


@pytest.mark.parametrize("name", ["", ".shop", "a b", "a/b", "ü", "a" * 64, "shop\n"])
def test_another_name_is_refused(name: str) -> None:
    assert name_fault(name) is not None


def test_the_revision_of_a_plan_is_that_of_its_changes() -> None:
    taken = FieldChange(name="managed_by", from_="", to="api")
    one = BundleChange(kind="monitor", uid="a", action=BundleAction.UNCHANGED, fields=[taken])
    other = BundleChange(kind="monitor", uid="b", action=BundleAction.ORPHAN)
    assert revision_of("", [one, other]) == revision_of("", [other, one])
    assert revision_of("", [one]) != revision_of("jobs", [one])
    plans: tuple[list[BundleChange], ...] = ([], [one], [other], [one, other])
    assert len({revision_of("", plan) for plan in plans}) == len(plans)
    counts = counts_of([one, other])
    assert (counts.taken_over, counts.unchanged, counts.orphaned) == (1, 1, 1)
    assert counts.any_change
    assert not counts_of([]).any_change
