"""Numbers in responses, as conditions compare and print them. Pure."""

import math

from .condition_evaluation import MISSING

# Above it a float cannot represent every whole number.
_WHOLE_MOST = 2**53
_DIGITS_MOST = 1_000


def read_numeral(text: str) -> object:
    """Returns a number. Whole numbers become int, so that they print as `1`, not `1.0`.

    A larger number with a fraction or an exponent in its text remains a float.
    Returns MISSING for NaN, which means that no number exists.
    Raises: `ValueError` if the text is not a number.
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
