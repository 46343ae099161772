"""Facets of a list: values that a filter offers, each with its count, and the numbers of pages."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

# Values of one facet that a list offers; a text filter finds the others.
CHOICES_MOST: Final = 60


@dataclass(frozen=True, slots=True)
class Choice:
    value: str
    word: str
    many: int
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class Facet:
    """Facet of a filter with its values, and how many objects have each."""

    name: str
    title: str
    choices: Sequence[Choice]
    # Values that are not offered.
    further: int

    @property
    def chosen(self) -> list[str]:
        return [one.word for one in self.choices if one.is_chosen]


def facet_of(
    name: str,
    title: str,
    counts: Counter[str],
    chosen: frozenset[str],
    word: Callable[[str], str],
) -> Facet:
    """Returns the chosen values, then the most frequent others."""
    ordered = sorted(counts | dict.fromkeys(chosen - set(counts), 0), key=lambda v: (-counts[v], v))
    offered = [value for value in ordered if value in chosen]
    offered += [value for value in ordered if value not in chosen][: CHOICES_MOST - len(offered)]
    choices = [Choice(value, word(value), counts[value], value in chosen) for value in offered]
    return Facet(name, title, choices, len(ordered) - len(offered))


def page_numbers(at: int, last: int) -> list[int]:
    """Returns the page numbers to offer, 0 for a gap between them."""
    offered = sorted({1, last, *range(max(at - 2, 1), min(at + 2, last) + 1)})
    found: list[int] = []
    for number in offered:
        if found and number - found[-1] > 1:
            found.append(0)
        found.append(number)
    return found
