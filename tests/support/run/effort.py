"""The effort of a random test: small in `make test`, large in `make soak`."""

import os
from collections.abc import Iterable
from typing import Any, Final

import pytest

IS_SOAK: Final = os.environ.get("LEADLINE_SOAK") == "1"
# A fifth of the examples detected the same 54 of 60 mutations of the rules as all of them did.
_SHARE_OF_EXAMPLES: Final = 5
_FEWEST_EXAMPLES: Final = 10


def examples(thorough: int) -> int:
    """Returns the number of Hypothesis examples: `thorough` in a soak run, else a fifth of it."""
    return thorough if IS_SOAK else max(thorough // _SHARE_OF_EXAMPLES, _FEWEST_EXAMPLES)


def varied(quick: Iterable[Any], thorough: Iterable[Any]) -> list[Any]:
    """Returns the arguments of `parametrize`: all of `thorough`, the rest of which is soak.

    `make test` runs the members of `quick`, which `thorough` must contain; `make soak` runs the
    others. An argument is a value or a tuple of values.
    """
    chosen = list(quick)
    every = list(thorough)
    assert all(argument in every for argument in chosen), "an argument that no run would select"
    return [argument if argument in chosen else _soak(argument) for argument in every]


def _soak(argument: Any) -> Any:
    values = argument if isinstance(argument, tuple) else (argument,)
    return pytest.param(*values, marks=pytest.mark.soak)
