"""The verifier of announcements accepts a correct history, and finds each kind of fault in it."""

from dataclasses import replace

import pytest

from .announcements_verifier import (
    Announced,
    Mail,
    PageRead,
    verify_changes,
    verify_mails,
    verify_page,
    verify_updates,
)

TEXTS = ["notice-1.0", "notice-1.1", "notice-1.2"]
PEOPLE = ["ada@example.com", "grace@example.com"]


def announced() -> Announced:
    return Announced("id", "notice-1", list(TEXTS), 100.0, 150.0, {"notice-1.3"})


def mails() -> list[Mail]:
    return [
        Mail(100.0 + place, address, f"Chaos:\n\n{text}\nUnsubscribe")
        for address in PEOPLE
        for place, text in enumerate(TEXTS)
    ]


def test_a_correct_history_has_no_violation() -> None:
    twice = [*mails(), replace(mails()[0], at=120.0)]
    assert verify_updates(announced(), TEXTS) == []
    assert verify_updates(announced(), [*TEXTS, "notice-1.3"]) == []
    assert verify_mails([announced()], PEOPLE, twice) == []
    reads = [
        PageRead(100.5, 100.6, frozenset()),
        PageRead(110.0, 110.1, frozenset({"notice-1"})),
        PageRead(149.0, 151.0, frozenset()),
    ]
    assert verify_page([announced()], reads) == []
    assert verify_changes(["build-1"], [{"external_id": "build-1"}, {"external_id": "b"}]) == []


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        (TEXTS[:2], "acknowledged"),
        ([*TEXTS, TEXTS[2]], "stored 2 times"),
        ([TEXTS[1], TEXTS[0], TEXTS[2]], "acknowledged"),
        ([*TEXTS, "notice-1.9"], "was not sent"),
    ],
)
def test_a_lost_repeated_moved_or_foreign_update_is_found(stored: list[str], found: str) -> None:
    assert found in " ".join(verify_updates(announced(), stored))


def test_a_lost_mail_is_found() -> None:
    for place in range(len(mails())):
        left = mails()
        lost = left.pop(place)
        (wrong,) = verify_mails([announced()], PEOPLE, left)
        assert lost.to in wrong


def test_a_text_is_no_part_of_another_one() -> None:
    longer = replace(announced(), texts=["notice-1.0"])
    mail = Mail(100.0, PEOPLE[0], "notice-1.01")
    assert verify_mails([longer], PEOPLE[:1], [mail]) != []


def test_mails_in_another_order_are_found() -> None:
    first, second, third, *_ = mails()
    swapped = [first, replace(third, at=second.at), replace(second, at=third.at)]
    (wrong,) = verify_mails([announced()], PEOPLE[:1], swapped)
    assert "order" in wrong


def test_an_incident_that_the_page_hides_is_found() -> None:
    assert verify_page([announced()], [PageRead(103.0, 103.1, frozenset({"other"}))]) != []


@pytest.mark.parametrize("names", [[], ["build-1", "build-1"]])
def test_a_lost_or_repeated_change_is_found(names: list[str]) -> None:
    assert verify_changes(["build-1"], [{"external_id": name} for name in names]) != []
