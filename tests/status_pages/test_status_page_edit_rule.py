"""The rules of component edits: one source, bounds of the texts, and the notes of a conversion. The
model is the interface's list of fields, and the source that each field belongs to.
"""

from itertools import product
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.storage.status_pages.rules.status_page import (
    ComponentSource,
    ComponentStatus,
    Visibility,
)
from leadline.storage.status_pages.rules.status_page_edit import (
    COMPONENT_NAME_LONGEST,
    DESCRIPTION_LONGEST,
    GROUP_LONGEST,
    POSITION_MOST,
    BindingTarget,
    ComponentDraft,
    ComponentEdit,
    PageDraft,
    component_faults,
    conversion_fault,
    conversion_notes,
    next_position,
    page_faults,
    target_of_new,
)

UID = UUID(int=7)
FIELDS = {"monitor_id": "monitor", "service_id": "service", "manual_status": "manual"}
ORDER = list(FIELDS)


def target(names: tuple[str, ...]) -> BindingTarget:
    return BindingTarget(
        monitor=UID if "monitor_id" in names else None,
        service=UID if "service_id" in names else None,
        manual_status=ComponentStatus.NO_DATA if "manual_status" in names else None,
    )


SUBSETS = [
    tuple(name for name, there in zip(ORDER, chosen, strict=True) if there)
    for chosen in product([False, True], repeat=3)
]


@pytest.mark.parametrize("names", SUBSETS)
def test_a_component_has_exactly_one_source(names: tuple[str, ...]) -> None:
    found = target_of_new(target(names))
    if len(names) > 1:
        assert isinstance(found, tuple)
        assert found[0] == names[1]
    elif names:
        assert found == target(names)
    else:
        assert found == BindingTarget(manual_status=ComponentStatus.OPERATIONAL)


@pytest.mark.parametrize("source", ComponentSource)
@pytest.mark.parametrize("names", SUBSETS)
def test_a_conversion_has_exactly_the_field_of_its_source(
    source: ComponentSource, names: tuple[str, ...]
) -> None:
    (own,) = [field for field, kind in FIELDS.items() if kind == source]
    fault = conversion_fault(source, target(names))
    if names == (own,):
        assert fault is None
    elif own not in names:
        assert fault == (own, "is required")
    else:
        assert fault is not None
        assert fault[0] == next(name for name in names if name != own)


PLAIN = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))
LONGEST = {
    "name": COMPONENT_NAME_LONGEST,
    "description": DESCRIPTION_LONGEST,
    "group": GROUP_LONGEST,
}


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.text(max_size=120),
            "description": st.text(max_size=520) | st.just("x" * 501) | st.just("two\nlines\t"),
            "group": st.text(max_size=120),
            "position": st.integers(-2, POSITION_MOST + 2),
        },
    )
)
def test_texts_outside_their_bounds_are_refused_with_their_field(
    edit: dict[str, object],
) -> None:
    refused = {field for field, _ in component_faults(ComponentEdit(**edit))}  # type: ignore[arg-type]
    for field, value in edit.items():
        if isinstance(value, int):
            assert (field in refused) is not (0 <= value <= POSITION_MOST)
            continue
        assert isinstance(value, str)
        lines = "\n\t" if field == "description" else ""
        bad = len(value) > LONGEST[field] or any(
            (ord(c) < 32 or 127 <= ord(c) < 160 or 0xD800 <= ord(c) < 0xE000) and c not in lines
            for c in value
        )
        blank = field == "name" and not value.strip()
        assert (field in refused) is (bad or blank), value
    assert refused <= set(edit)


@pytest.mark.parametrize("field", LONGEST)
def test_the_length_limit_of_each_text(field: str) -> None:
    for length, fits in ((LONGEST[field], True), (LONGEST[field] + 1, False)):
        values = {"name": "x", field: "ü" * length}
        target = BindingTarget(manual_status=ComponentStatus.NO_DATA)
        draft = ComponentDraft(target=target, **values)  # type: ignore[arg-type]
        assert [name for name, _ in component_faults(draft)] == ([] if fits else [field])


def test_a_position_has_bounds() -> None:
    for position, faults in ((-1, 1), (0, 0), (POSITION_MOST, 0), (POSITION_MOST + 1, 1)):
        fields = [field for field, _ in component_faults(ComponentEdit(position=position))]
        assert fields == ["position"] * faults


def test_names_are_not_blank_and_an_empty_edit_is_valid() -> None:
    assert list(component_faults(ComponentEdit())) == []
    for blank in ("", " ", "\u2003"):
        assert [field for field, _ in component_faults(ComponentEdit(name=blank))] == ["name"]


@pytest.mark.parametrize(
    ("slug", "title", "fields"),
    [
        ("shop", "Shop", []),
        ("a" + "b" * 62, "x" * 200, []),
        ("a" + "b" * 63, "Shop", ["slug"]),
        ("", "", ["slug", "title"]),
        ("Shop", "Shop", ["slug"]),
        ("1shop", "Shop", ["slug"]),
        ("shop\n", "Shop", ["slug"]),
        ("shop/x", "Shop", ["slug"]),
        ("shop", "  ", ["title"]),
        ("shop", "x" * 201, ["title"]),
        ("shop", "a\nb", ["title"]),
        ("shop", "a\u202eb", []),
    ],
)
def test_slugs_and_titles_of_pages(slug: str, title: str, fields: list[str]) -> None:
    draft = PageDraft(slug=slug, title=title)
    assert [field for field, _ in page_faults(draft)] == fields
    assert draft.visibility is Visibility.LISTED


@given(st.lists(st.integers(0, POSITION_MOST)))
def test_the_next_position_is_after_all_others(positions: list[int]) -> None:
    found = next_position(positions)
    assert 0 <= found <= POSITION_MOST
    assert all(found > other for other in positions) or max(positions) == found == POSITION_MOST
    assert next_position([]) == 0


@pytest.mark.parametrize("before", ComponentSource)
@pytest.mark.parametrize("after", ComponentSource)
@pytest.mark.parametrize("is_bound", [True, False])
def test_conversion_notes_name_lost_uptime_and_incidents(
    before: ComponentSource, after: ComponentSource, is_bound: bool
) -> None:
    notes = conversion_notes(before, after, is_bound=is_bound)
    assert ("no uptime" in notes[0]) is (after is ComponentSource.MANUAL)
    loses_incidents = before is not ComponentSource.MANUAL and is_bound
    assert any("Incidents" in note for note in notes) is loses_incidents
