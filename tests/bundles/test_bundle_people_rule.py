"""People of a bundle: what is refused with its field, and that reading is idempotent."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.senders.personal import PERSONAL_SPECS
from leadline.storage.bundles.rules.bundle import read_bundle
from leadline.storage.bundles.rules.bundle_diff import change_of
from leadline.storage.bundles.rules.bundle_people import KINDS, PEOPLE_MOST, new_methods
from leadline.storage.bundles.transactions.stored_changes import (
    revision_changes,
    stored_changes,
)
from leadline.storage.core.refusal import Refused


def bundle(people: Any) -> dict[str, Any]:
    return {"format": 3, "organization": "acme", "project": "shop", "people": people}


def one(**given: Any) -> dict[str, Any]:
    return {"a": {"email": "a@example.test", **given}}


def method(**given: str) -> dict[str, Any]:
    return one(contact_methods=[{"kind": "sms", "address": "+4930123456", **given}])


FAULTS: list[tuple[Any, str]] = [
    (one(email="anna"), "people.a.email: must be an e-mail address"),
    (one(role="project_admin"), "people.a.role: must be one of editor, viewer"),
    (one(phone="1"), "people.a.phone: is not known here"),
    (one(name="x" * 500), "people.a.name: must be at most "),
    (method(kind="webhook"), "people.a.contact_methods"),
    (method(token="x"), "people.a.contact_methods"),
    (method(address="0301234"), "people.a.contact_methods[0].address: must be a phone number"),
    (method(label="x" * 61), "people.a.contact_methods[0].label: must be at most 60"),
    (method(label="a\nb"), "people.a.contact_methods[0].label: must not contain control"),
    (
        one(
            contact_methods=[
                {"kind": "sms", "address": "+4930123456"},
                {"kind": "sms", "address": "0049 30 123456"},
            ]
        ),
        "people.a.contact_methods[1]: must not be given twice",
    ),
    ({**one(), "b": {"email": "A@example.test"}}, "people.b.email: is the address of a too"),
    (
        {f"p{n}": {"email": f"p{n}@example.test"} for n in range(PEOPLE_MOST + 1)},
        f"people: must have at most {PEOPLE_MOST} entries",
    ),
]


@pytest.mark.parametrize(("people", "said"), FAULTS)
def test_a_fault_is_refused_with_its_field(people: Any, said: str) -> None:
    with pytest.raises(Refused) as caught:
        read_bundle(bundle(people))
    assert str(caught.value).startswith(said)


def test_people_need_format_3() -> None:
    with pytest.raises(Refused, match="people need format 3"):
        read_bundle({**bundle(one()), "format": 2})


def test_a_kind_of_a_proposal_has_one_setting_and_no_secret() -> None:
    for kind in KINDS:
        spec = PERSONAL_SPECS[kind]
        assert [one.name for one in spec.settings if one.required] == ["to"]
        assert not spec.secrets & {"to"}


def test_no_personal_data_is_stored_with_the_changes() -> None:
    method = {"kind": "sms", "address": "+4930123456", "label": "Secret"}
    before = {"email": "secret@a.test", "name": "Secret A", "role": "editor", "contact_methods": []}
    after = {**before, "email": "secret@b.test", "name": "Secret B", "contact_methods": [method]}
    made = change_of("person", "a", None, after, None)
    changes = [made, change_of("person", "b", before, after | {"role": "viewer"}, None)]
    kept = msgspec.json.encode(stored_changes(changes)).decode() + revision_changes(changes)
    assert "ecret" not in kept
    assert "+49" not in kept
    assert [one.name for one in stored_changes(changes)[0].fields] == list(after)
    assert '"from":"editor","to":"viewer"' in kept
    # Other objects keep their names.
    (renamed,) = stored_changes([change_of("service", "s", {"name": "A"}, {"name": "B"}, None)])
    assert renamed.fields[0].to == "B"


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "kind": st.sampled_from(KINDS),
                "address": st.sampled_from(
                    ["+49 (0)30 1234567", "0049301234567", "a@b.example", "x", ""]
                ),
            },
            optional={"label": st.sampled_from(["", " ", "Mobile", "ü" * 60])},
        ),
        max_size=4,
    )
)
def test_what_is_read_is_read_again_as_itself(methods: list[dict[str, str]]) -> None:
    try:
        read = read_bundle(bundle(one(contact_methods=methods)))
    except Refused as fault:
        field = fault.field
    else:
        plain = [msgspec.structs.asdict(each) for each in read.people["a"].contact_methods]
        assert read_bundle(bundle(one(contact_methods=plain))) == read
        return
    assert field.startswith("people.a.contact_methods[")


ADDRESSES = st.lists(
    st.fixed_dictionaries({"kind": st.sampled_from(KINDS), "address": st.sampled_from("abc")}),
    max_size=6,
)


@given(ADDRESSES, ADDRESSES)
def test_only_methods_that_were_not_proposed_are_new(
    wanted: list[dict[str, str]], before: list[dict[str, str]]
) -> None:
    found = new_methods([{**each, "label": "x"} for each in wanted], before)
    assert [{k: each[k] for k in ("kind", "address")} for each in found] == [
        each for each in wanted if each not in before
    ]
