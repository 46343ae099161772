"""Numbers as servers spell them, as conditions compare and print them.

Pure.
"""

import math

from .condition_evaluation import MISSING

# Above it a float no longer tells whole numbers apart.
_WHOLE_MOST = 2**53
_DIGITS_MOST = 1_000


def read_numeral(text: str) -> object:
    """A whole number as one, so that it reads `1` and not `1.0`; MISSING for NaN, which says that
    there is no number. `ValueError` where the text is no number at all.
    """
    if len(text) > _DIGITS_MOST:
        raise ValueError("too long to be a number")
    if text.isascii() and text.removeprefix("-").isdigit():
        return int(text)
    number = float(text)
    if math.isnan(number):
        return MISSING
    whole = number.is_integer() and abs(number) < _WHOLE_MOST
    return int(number) if whole else number
