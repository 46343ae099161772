"""An object that a bundle refers to is found by uid, by id or by a unique name, and by no other."""

from uuid import UUID

import pytest

from leadline.storage.bundles.transactions.bundle_context import (
    NameReferences,
    resolve_named,
    word_for,
)
from leadline.storage.core.refusal import Refused

OWN, TWIN, OTHER = (UUID(int=n) for n in (0xABC, 2, 3))
STRANGER = UUID(int=9)


def known() -> NameReferences:
    found = NameReferences({OWN: "desk", TWIN: "pager", OTHER: "pager"})
    found.refer("night", TWIN)
    return found


def test_a_uid_an_id_and_a_unique_name_are_found() -> None:
    for word, own in (("night", TWIN), (str(OTHER), OTHER), ("desk", OWN)):
        assert resolve_named("channel", word, known()) == str(own)
    assert resolve_named("channel", "", known()) == ""


@pytest.mark.parametrize(
    ("word", "rule"),
    [
        ("pager", "is the name of two: give an id"),
        ("moon", "is not a name in the project"),
        (str(STRANGER), "is not a name in the project"),
        (str(OWN).upper(), "is not a name in the project"),
    ],
)
def test_other_words_are_refused(word: str, rule: str) -> None:
    with pytest.raises(Refused) as refused:
        resolve_named("channel", word, known())
    assert rule in str(refused.value)


def test_the_word_of_an_object_leads_back_to_it() -> None:
    for own, word in ((OWN, "desk"), (TWIN, "night"), (OTHER, str(OTHER))):
        assert word_for(own, known()) == word
        assert resolve_named("channel", word, known()) == str(own)
