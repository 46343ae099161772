"""Text of others as it may be printed: one line, bounded, and nothing in it that a terminal or a
build server would take for a command.

Names and reasons are written by people who may less than whoever runs the pipeline.
"""

import re
import unicodedata
from typing import Final

LONGEST: Final = 500

# Controls, directions of writing, surrogates, what has no meaning, ends of lines, odd spaces.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp", "Zs"})


def shown(text: str, longest: int = LONGEST) -> str:
    """One line of at most that many characters. Two hash signs are set apart, since in the middle
    of a line `##[…]`, `##vso[…]` and `##teamcity[…]` are commands."""
    one_line = "".join(
        " " if unicodedata.category(letter) in _HIDDEN else letter for letter in text[: longest + 1]
    )
    if len(one_line) > longest:
        one_line = one_line[: longest - 1] + "…"
    return re.sub("#(?=#)", "# ", one_line).strip()


def shown_json(data: bytes) -> bytes:
    """A JSON document that says the same, with the same characters escaped inside its strings as
    `shown` takes out; it is valid, so that they stand nowhere else."""
    text = data.decode()
    return re.sub(r"(?<=#)#|[^\t\n\r -~]", _escaped, text).encode()


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if letter == "#" or unicodedata.category(letter) in _HIDDEN:
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return letter
