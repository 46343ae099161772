"""Time after which a thread that computes gives the interpreter to the event loop.

Each system call of the event loop releases the interpreter. While a thread computes, for example
for the ssh probe, the event loop gets it back after the switch interval. With the 5 ms of Python, a
pass with many calls took seconds beside 17 costly ssh targets (`make bench ARGS=hostile`).
"""

import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0005


def favor_event_loop() -> None:
    """Shortens the switch interval of this process."""
    sys.setswitchinterval(SWITCH_SECONDS)
