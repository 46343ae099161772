"""Wait for a bundle that the server applies in the background, with a progress bar."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

import msgspec
import trio
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .api_client import ApiClient, ApiResponse, NoResponse, read_json, refusal

# Limit of one request that begins or reads an operation. The whole wait has no limit by default.
REQUEST_SECONDS: Final = 60.0
FIRST_PAUSE_SECONDS: Final = 0.2
LAST_PAUSE_SECONDS: Final = 2.0
# The server can restart meanwhile.
SILENCE_SECONDS: Final = 60.0
_ENDS: Final = ("succeeded", "failed")


class RunningOperation(msgspec.Struct, frozen=True, kw_only=True):
    """Operation of the API, as far as the command uses it."""

    id: UUID
    state: str
    done: int
    total: int
    error: str = ""
    result: msgspec.Raw = msgspec.Raw(b"")


class ApplicationFailed(Exception):
    """The server did not apply the bundle. The message is its reason."""


async def in_time(client: ApiClient, method: str, path: str, **given: Any) -> ApiResponse:
    """Sends a request. Raises NoResponse, also after REQUEST_SECONDS."""
    with trio.move_on_after(REQUEST_SECONDS):
        return await client.ask(method, path, **given)
    raise NoResponse(f"no answer within {REQUEST_SECONDS:g} s")


async def result_of(client: ApiClient, answer: ApiResponse, seconds: float) -> bytes:
    """Waits for the end of the operation that the server answered with, and returns its result.

    Raises: ApplicationFailed, NoResponse if the outcome is unknown, for example after `seconds`.
    """
    found = read_json(answer.body, RunningOperation)
    if found is None:
        raise NoResponse(refusal(answer))
    with trio.move_on_after(seconds):
        return await _end_of(client, found)
    raise NoResponse(_unknown(found.id, f"timed out after {seconds:g} s"))


async def _end_of(client: ApiClient, found: RunningOperation) -> bytes:
    pause = FIRST_PAUSE_SECONDS
    with _progress_bar() as show:
        while found.state not in _ENDS:
            show(found.done, found.total)
            await trio.sleep(pause)
            pause = min(1.5 * pause, LAST_PAUSE_SECONDS)
            found = await _poll(client, found.id)
    if found.state == "failed":
        raise ApplicationFailed(found.error)
    return bytes(found.result)


async def _poll(client: ApiClient, uid: UUID) -> RunningOperation:
    """Reads the operation, and repeats a request without an answer for SILENCE_SECONDS."""
    until = trio.current_time() + SILENCE_SECONDS
    while True:
        try:
            answer = await in_time(client, "GET", f"/operations/{uid}")
        except NoResponse as error:
            why = str(error)
        else:
            found = read_json(answer.body, RunningOperation)
            if answer.status == 200 and found is not None and found.id == uid:
                return found
            why = refusal(answer)
            if answer.status < 500:
                raise NoResponse(_unknown(uid, why))
        if trio.current_time() >= until:
            raise NoResponse(_unknown(uid, why))
        await trio.sleep(LAST_PAUSE_SECONDS)


def _unknown(uid: UUID, why: str) -> str:
    return f"the server continues with operation {uid}, whose outcome is unknown: {why}"


@contextmanager
def _progress_bar() -> Iterator[Any]:
    """Yields a function that shows `done` of `total` objects on a terminal."""
    columns = (
        TextColumn("Applying"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("objects"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not sys.stderr.isatty()
    ) as bar:
        task = bar.add_task("Applying", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
