"""leadline events"""

import math
from datetime import UTC, datetime
from typing import Any, Final

import click
import trio

from ..api_client import NoResponse
from ..safe_text import shown
from .event_source import StreamBroken, open_events
from .lookup import find_monitor, find_project, project_option
from .printed import json_line, moment
from .session import Api, ApiRefused, Session, api_command
from .table import fitted_cell, terminal_width

PAUSE_SECONDS: Final = 1.0
PAUSE_SECONDS_MOST: Final = 30.0
# Slugs that are remembered.
SLUGS_MOST: Final = 10_000
# Refusals that another attempt can change.
_TEMPORARY: Final = frozenset({429, 500, 502, 503, 504})


@click.command("events")
@project_option
@click.option("--results", is_flag=True, help="Also results that change no status.")
@click.option("--count", type=click.IntRange(1), help="End after this many events.")
@click.option(
    "--reconnect/--no-reconnect",
    default=True,
    show_default=True,
    help="Connect again after an interruption, or exit with 1.",
)
@api_command
def command(
    session: Session, project: str | None, results: bool, count: int | None, reconnect: bool
) -> None:
    """Follow the status changes of monitors until Ctrl-C.

    The server keeps no past events. After an interruption the command connects again, and reports
    the gap on the standard error output; with --json the line {"type": "gap", ...} is also in the
    output. --timeout is the longest time of a connection attempt. Without --project, the events
    of all projects that the account sees are shown.

    \b
    Example:
      leadline events
      leadline events --json --count 1
    Exit status: 0 after --count events, 1 refused or interrupted stream, 2 usage error,
    130 interrupted with Ctrl-C.
    """

    async def work(api: Api) -> None:
        only = (await find_project(api, project)).uid if project else ""
        follower = _Follower(api, session, only, count)
        await follower.follow("/events?every=result" if results else "/events", reconnect)

    session.run(work, math.inf)


class _Follower:
    """Prints events, and remembers the slugs of their monitors."""

    def __init__(self, api: Api, session: Session, project: str, count: int | None) -> None:
        self._api = api
        self._session = session
        self._project = project
        self._left = math.inf if count is None else count
        self._slugs: dict[str, str] = {}
        self._heard_at = datetime.now(UTC)
        self._lost_at: datetime | None = None
        self._pause = PAUSE_SECONDS

    async def follow(self, path: str, reconnect: bool) -> None:
        while self._left:
            try:
                await self._connection(path)
            except ApiRefused as error:
                if self._lost_at is None or error.status not in _TEMPORARY:
                    raise
                why = str(error)
            except NoResponse as error:
                if self._lost_at is None:
                    raise
                why = str(error)
            except StreamBroken as error:
                if not reconnect:
                    raise NoResponse(f"event stream interrupted: {error}") from error
                why = f"event stream interrupted: {error}; connecting again"
            else:
                return
            click.echo(f"leadline: {why}", err=True)
            self._lost_at = self._lost_at or self._heard_at
            await trio.sleep(self._pause)
            self._pause = min(2 * self._pause, PAUSE_SECONDS_MOST)

    async def _connection(self, path: str) -> None:
        async with open_events(self._api, path, self._session.timeout_seconds) as source:
            self._report_gap()
            while self._left:
                try:
                    event = await source.next()
                finally:
                    self._heard_at = source.heard_at
                self._pause = PAUSE_SECONDS
                if self._project in ("", event.get("project_id")):
                    await self._print(event)
                    self._left -= 1

    def _report_gap(self) -> None:
        if self._lost_at is None:
            return
        lost, back = self._lost_at.isoformat(), datetime.now(UTC).isoformat()
        self._lost_at = None
        text = f"connected again; events from {moment(lost)} to {moment(back)} can be missing"
        click.echo(f"leadline: {text}", err=True)
        if self._session.as_json:
            click.echo(json_line({"type": "gap", "from": lost, "to": back}))

    async def _print(self, event: dict[str, Any]) -> None:
        if self._session.as_json:
            click.echo(json_line(event))
            return
        uid = str(event["monitor_id"])
        if len(self._slugs) > SLUGS_MOST:
            self._slugs.clear()
        if uid not in self._slugs:
            self._slugs[uid] = await self._slug_of(uid)
        word = event["status"]
        if "up" in event and event["up"] != (word == "up"):
            word = f"{word} ({'good' if event['up'] else 'failed'} run)"
        text = f"{moment(event['ts'])}  {word:<8} {self._slugs[uid]}  {event['latency_ms']} ms"
        text = shown(text)
        width = terminal_width()
        click.echo(text if width is None else fitted_cell(text, width))

    async def _slug_of(self, uid: str) -> str:
        """Returns the slug, or the id of a monitor that was deleted meanwhile."""
        try:
            with trio.move_on_after(self._session.timeout_seconds):
                return str((await find_monitor(self._api, None, uid))["slug"])
        except NoResponse:
            pass
        return uid
