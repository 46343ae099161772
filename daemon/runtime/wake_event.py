"""Ends a pause early: whoever has work for a loop says so, and the loop looks for it then."""

import trio


class WakeEvent:
    """Waking twice before it looks is waking once."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Until it is woken, or for so long at most."""
        with trio.move_on_after(seconds):
            await self._event.wait()
        self._event = trio.Event()
