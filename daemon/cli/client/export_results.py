"""leadline export results"""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click

from ..api_client import NoResponse
from .export_progress import ExportProgress, ResumableRows
from .exporting import PAGE_ROWS, Export, export_command, since_option
from .lookup import find_monitor, find_project, project_option
from .parquet_rows import PARQUET
from .row_writer import CSV, JSON_LINES, Rows
from .session import PAGE, Api

FIELDS: Final = {
    "ts": "instant",
    "monitor": "text",
    "up": "flag",
    "latency_ms": "number",
    "code": "number",
    "msg": "text",
    "conditions": "texts",
    "monitor_id": "text",
}


class InstantParam(click.ParamType[datetime]):
    """Instant with an offset, or a day in UTC."""

    name = "instant"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        text = str(value)
        try:
            is_day = len(text) == len("2026-01-31")
            found = datetime.fromisoformat(f"{text}T00:00:00Z" if is_day else text)
        except ValueError:
            found = None
        if found is None or found.tzinfo is None:
            rule = "must be a day (2026-01-31, in UTC) or an instant (2026-01-31T08:00:00Z)"
            self.fail(rule, param, ctx)
        return found


def range_options(function: Any) -> Any:
    """Adds the options of a range of time and of a continued export."""
    for option in (
        click.option(
            "--resume",
            is_flag=True,
            help="Continue the export to this file that was interrupted, or begin one that can be"
            " continued.",
        ),
        click.option("--to", "to_at", type=InstantParam(), help="Only results before it."),
        click.option(
            "--from", "from_at", type=InstantParam(), help="Only results from this instant on."
        ),
    ):
        function = option(function)
    return function


@click.command("results")
@click.argument("monitors", metavar="[MONITOR...]", nargs=-1)
@project_option
@range_options
@since_option
@functools.partial(export_command, forms=(CSV, JSON_LINES, PARQUET))
def results(
    export: Export,
    monitors: tuple[str, ...],
    project: str | None,
    from_at: datetime | None,
    to_at: datetime | None,
    since: float | None,
    resume: bool,
) -> None:
    """Export the results of monitors, of each the newest first. Without MONITOR, of all.

    The export needs the memory of one page of rows, and of 20 000 rows as Parquet. Results that
    were deleted by the retention of the server are not in it. With --resume, the rows that arrived
    are kept in a hidden file beside the output; the same command continues after them.

    \b
    Example:
      leadline export results web --since 7d -o web.csv
      leadline export results --from 2026-01-01 --to 2026-02-01 --format parquet -o january.parquet
    Exit status: 0 complete, 1 refused, failed or incomplete, 2 usage error, 130 interrupted.
    """
    if since is not None and from_at is not None:
        raise click.UsageError("give --from or --since")
    if from_at is not None and to_at is not None and to_at <= from_at:
        raise click.UsageError("--to must be after --from")
    if resume and export.output is None:
        raise click.UsageError("--resume needs --output")

    async def begin(api: Api) -> ExportProgress:
        found = await _monitors(api, project, monitors)
        # The clock of the server, in its last answer.
        end = to_at or (api.server_time + timedelta(seconds=1) if resume else None)
        start = from_at if since is None else api.server_time - timedelta(seconds=since)
        return ExportProgress(asked, _text(start), _text(end), found)

    async def work(api: Api, rows: Rows) -> None:
        progress = await begin(api)
        async for page in _pages(export, api, progress):
            for row in page:
                rows.write(row)

    async def continue_export(api: Api, rows: Rows) -> None:
        with _kept_rows(Path(str(export.output)), asked) as kept:
            progress = kept.read() or await begin(api)
            kept.open(progress)
            async for page in _pages(export, api, progress):
                kept.keep(page, progress)
            for row in kept.stored():
                rows.write(row)

    asked = [export.url, str(project), *monitors, _text(from_at), _text(to_at), str(since)]
    export.run(FIELDS, continue_export if resume else work)
    if resume:
        ResumableRows(Path(str(export.output)), asked).forget()


async def _monitors(
    api: Api, project: str | None, monitors: tuple[str, ...]
) -> list[tuple[str, str]]:
    """Returns id and slug of the named monitors, or of all of the project."""
    if monitors:
        named = [await find_monitor(api, project, one) for one in monitors]
        return [(one["id"], one["slug"]) for one in named]
    home, cursor = await find_project(api, project), ""
    found: list[tuple[str, str]] = []
    while True:
        page = await api.page(f"{home.path}/monitors", PAGE, cursor, "list monitors")
        found += [(one["id"], one["slug"]) for one in page.rows]
        cursor = page.cursor
        if not cursor:
            return found


async def _pages(export: Export, api: Api, progress: ExportProgress) -> Any:
    """Yields the pages from the progress on. At each yield it says where the next page begins."""
    given = {"from": progress.from_, "to": progress.to}
    span = "&".join(f"{name}={text}" for name, text in given.items() if text)
    limit = PAGE_ROWS
    while progress.place < len(progress.monitors):
        uid, slug = progress.monitors[progress.place]
        path = f"/monitors/{uid}/heartbeats" + (f"?{span}" if span else "")
        page = await export.page(api, path, limit, progress.cursor, f"export results of {slug}")
        progress.cursor, limit = page.cursor, page.limit
        if not page.cursor:
            progress.place += 1
        yield [{**row, "monitor": slug} for row in page.rows]


@contextmanager
def _kept_rows(output: Path, asked: list[str]) -> Iterator[ResumableRows]:
    kept = ResumableRows(output, asked)
    try:
        yield kept
    except OSError as error:
        raise NoResponse(f"{output} cannot be written: {error.strerror}") from error
    finally:
        kept.close()


def _text(instant: datetime | None) -> str:
    """Returns an instant as the API reads it, empty for None."""
    return "" if instant is None else f"{instant.astimezone(UTC).replace(tzinfo=None).isoformat()}Z"
