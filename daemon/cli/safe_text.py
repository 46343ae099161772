"""Escaping of untrusted text for a terminal or the log of a build server.

The authors of names and reasons can have fewer rights than the pipeline that prints them. Printed
text is therefore one bounded line without terminal controls and workflow commands.
"""

import re
import unicodedata
from typing import Final

LONGEST: Final = 500

# Controls, bidirectional marks, surrogates, unassigned and private code points, line separators,
# spaces.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp", "Zs"})


def shown(text: str, longest: int = LONGEST) -> str:
    """Returns one line of at most `longest` characters.

    Adjacent hash signs are separated by a space, since build servers execute `##[…]`, `##vso[…]`
    and `##teamcity[…]` also in the middle of a line."""
    one_line = "".join(
        " " if unicodedata.category(letter) in _HIDDEN else letter for letter in text[: longest + 1]
    )
    one_line = re.sub("#(?=#)", "# ", one_line)
    if len(one_line) > longest:
        one_line = one_line[: longest - 1] + "…"
    return one_line.strip()


def shown_json(data: bytes) -> bytes:
    """Returns an equal JSON document that escapes the characters that `shown` replaces.

    The document must be valid: then these characters occur only inside its strings."""
    text = data.decode()
    return re.sub(r"(?<=#)#|[^\t\n\r -~]", _escaped, text).encode()


def _escaped(found: re.Match[str]) -> str:
    letter = found[0]
    if letter == "#" or unicodedata.category(letter) in _HIDDEN:
        units = letter.encode("utf-16-be")
        return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
    return letter
