"""Texts as XML 1.0 may hold them: what it cannot hold, however it is escaped, is replaced."""

import re
from typing import Final

from ....storage.incidents.rules.incident import normal_lines

_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACED: Final = "\ufffd"


def legal(text: str) -> str:
    """With its lines ended in one way."""
    return _ILLEGAL.sub(_REPLACED, normal_lines(text))
