"""An additional run of a monitor, and results as cells of a table."""

from typing import Any, Final

import trio

from .printed import moment
from .session import Api

# A run lasts as long as its timeout, and waits for a free permit.
WAIT_SECONDS: Final = 120.0
_PAUSE_SECONDS: Final = 0.5


async def run_now(api: Api, monitor: dict[str, Any]) -> dict[str, Any]:
    """Requests a run, and returns the first result that is newer than those before the request.

    A scheduled run can be that result. The caller bounds the wait.
    """
    path, doing = f"/monitors/{monitor['id']}", f"test {monitor['slug']}"
    before = await _newest(api, path, doing)
    await api.send("POST", f"{path}/check", None, doing)
    while True:
        found = await _newest(api, path, doing)
        if found is not None and (before is None or found["ts"] > before["ts"]):
            return found
        await trio.sleep(_PAUSE_SECONDS)


async def _newest(api: Api, path: str, doing: str) -> dict[str, Any] | None:
    rows = (await api.page(f"{path}/heartbeats", 1, "", doing)).rows
    return rows[0] if rows else None


def result_fields(result: dict[str, Any]) -> tuple[Any, ...]:
    """Returns the cells of a result: instant, up or down, latency, message with conditions."""
    parts = [result.get("msg") or "", *(result.get("conditions") or [])]
    return (
        moment(result["ts"]),
        "up" if result["up"] else "down",
        f"{result['latency_ms']} ms",
        "; ".join(part for part in parts if part),
    )
