"""Exports: options, and the walk through the pages of a list to its oldest row."""

import functools
import math
import os
from collections.abc import Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

import click
import trio

from ..api_client import DurationParam, NoResponse, timeout_option
from .account import choose_account
from .parquet_rows import PARQUET
from .profile_file import profile_option
from .row_writer import CSV, JSON_LINES, Rows, opened_rows
from .session import Api, Page, Session, ended_quietly

PAGE_ROWS: Final = 500
_FORMS: Final = (
    "CSV with a header, or one JSON object in each line.",
    "CSV with a header, one JSON object in each line, or Parquet (needs leadline[parquet]).",
)

since_option = click.option(
    "--since",
    type=DurationParam("1m", "3660d", "7d"),
    help="Only the newest part, such as 7d.  [default: everything that is stored]",
)

Visit = Callable[[dict[str, Any]], bool]
Work = Callable[[Api, Rows], Awaitable[None]]


def export_command(
    function: Callable[..., None], forms: Sequence[str] = (CSV, JSON_LINES)
) -> Callable[..., None]:
    """Adds the options of an export to a command, whose first argument is its Export."""

    @click.option(
        "--format",
        "form",
        type=click.Choice(forms),
        default=CSV,
        show_default=True,
        help=_FORMS[len(forms) > 2],
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
            if form == PARQUET and output is None:
                raise click.UsageError("--format parquet needs --output")
            session = Session(account, False, timeout_seconds)
            function(Export(session, form, output), **given)

    return called


class Export:
    """A call of an export command."""

    def __init__(self, session: Session, form: str, output: Path | None) -> None:
        self._session = session
        self._form = form
        self.output = output

    @property
    def url(self) -> str:
        """Returns the address of the server."""
        return str(self._session.account.server.base)

    def run(self, fields: Collection[str], work: Work) -> None:
        """Writes the rows of the work. Exits with 1 if some are missing."""
        with opened_rows(self.output, self._form, fields) as rows:
            try:
                self._session.run(lambda api: work(api, rows), math.inf)
                rows.begin()
            except NoResponse as error:
                text = f"the export is incomplete after {rows.count} rows: {error}"
                raise NoResponse(text) from error
        if self.output is not None:
            click.echo(f"Wrote {rows.count} rows to {self.output}", err=True)

    async def walk(self, api: Api, path: str, doing: str, visit: Visit) -> None:
        """Visits the rows of a list from the newest on, until a visit returns False.

        --timeout applies to each page.
        """
        cursor, limit = "", PAGE_ROWS
        while True:
            page = await self.page(api, path, limit, cursor, doing)
            for row in page.rows:
                if not visit(row):
                    return
            cursor, limit = page.cursor, page.limit
            if not cursor:
                return

    async def page(self, api: Api, path: str, limit: int, cursor: str, doing: str) -> Page:
        """Returns the page of a list that begins after the cursor, of at most `limit` rows."""
        try:
            with trio.fail_after(self._session.timeout_seconds):
                return await api.page(path, limit, cursor, doing)
        except trio.TooSlowError:
            seconds = self._session.timeout_seconds
            raise NoResponse(f"cannot {doing}: timed out after {seconds:g} s") from None
