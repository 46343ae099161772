"""Wake event, which ends the pause of a loop when another component has work for it."""

import trio


class WakeEvent:
    """Event that resets itself after a wait; several calls of `set` count as one."""

    def __init__(self) -> None:
        self._event = trio.Event()

    def set(self) -> None:
        self._event.set()

    async def wait(self, seconds: float) -> None:
        """Waits for `set`, but at most `seconds`."""
        with trio.move_on_after(seconds):
            await self._event.wait()
        self._event = trio.Event()
