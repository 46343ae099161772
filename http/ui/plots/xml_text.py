"""Text for XML 1.0: characters that it cannot represent are replaced."""

import re
from typing import Final

from ....storage.incidents.rules.incident import normal_lines

_ILLEGAL: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REPLACED: Final = "\ufffd"


def legal(text: str) -> str:
    """Returns the text with legal characters and uniform line ends."""
    return _ILLEGAL.sub(_REPLACED, normal_lines(text))
