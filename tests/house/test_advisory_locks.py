"""Advisory locks of different kinds have different classes, so that none waits for another."""

import re
from collections import defaultdict
from typing import Final

from tests.house.sources import files, ident, text

# The classes of Leadline begin with the same digits.
_CLASS: Final = re.compile(r"^(\w*CLASS): Final = (1_279_610_\d{3})$", re.MULTILINE)


def test_every_class_of_advisory_locks_is_used_once() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for path in files():
        for name, number in _CLASS.findall(text(path)):
            found[number].append(f"{ident(path)}: {name}")
    assert found
    assert [places for places in found.values() if len(places) > 1] == []
