"""Exports: options, and the walk through the pages of a list to its oldest row."""

import functools
import math
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import click
import trio

from ..api_client import NoResponse, timeout_option
from .account import choose_account
from .profile_names import profile_option
from .row_writer import CSV, JSON_LINES, RowWriter, opened_rows
from .session import Api, Page, Session, ended_quietly

PAGE_ROWS: Final = 500

Visit = Callable[[dict[str, Any]], bool]
Work = Callable[[Api, RowWriter], Awaitable[None]]


def export_command(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options of an export to a command, whose first argument is its Export."""

    @click.option(
        "--format",
        "form",
        type=click.Choice([CSV, JSON_LINES]),
        default=CSV,
        show_default=True,
        help="CSV with a header, or one JSON object in each line.",
    )
    @click.option(
        "--output",
        "-o",
        type=click.Path(path_type=Path, dir_okay=False),
        help="File, written completely or not at all.  [default: the standard output]",
    )
    @profile_option
    @timeout_option
    @functools.wraps(function)
    def called(
        form: str, output: Path | None, profile: str | None, timeout_seconds: float, **given: Any
    ) -> None:
        with ended_quietly():
            account = choose_account(profile, os.environ)
            session = Session(account, False, timeout_seconds)
            function(Export(session, form, output), **given)

    return called


class Export:
    """A call of an export command."""

    def __init__(self, session: Session, form: str, output: Path | None) -> None:
        self._session = session
        self._form = form
        self._output = output

    def run(self, fields: tuple[str, ...], work: Work) -> None:
        """Writes the rows of the work. Exits with 1 if some are missing."""
        with opened_rows(self._output, self._form, fields) as rows:
            try:
                self._session.run(lambda api: work(api, rows), math.inf)
                rows.begin()
            except NoResponse as error:
                text = f"the export is incomplete after {rows.count} rows: {error}"
                raise NoResponse(text) from error
        if self._output is not None:
            click.echo(f"Wrote {rows.count} rows to {self._output}", err=True)

    async def walk(self, api: Api, path: str, doing: str, visit: Visit) -> None:
        """Visits the rows of a list from the newest on, until a visit returns False.

        --timeout applies to each page.
        """
        cursor, limit = "", PAGE_ROWS
        while True:
            page = await self._page(api, path, limit, cursor, doing)
            for row in page.rows:
                if not visit(row):
                    return
            cursor, limit = page.cursor, page.limit
            if not cursor:
                return

    async def _page(self, api: Api, path: str, limit: int, cursor: str, doing: str) -> Page:
        try:
            with trio.fail_after(self._session.timeout_seconds):
                return await api.page(path, limit, cursor, doing)
        except trio.TooSlowError:
            seconds = self._session.timeout_seconds
            raise NoResponse(f"cannot {doing}: timed out after {seconds:g} s") from None
