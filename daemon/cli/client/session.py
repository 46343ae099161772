"""Requests of a signed-in command, and how the command ends.

Exit statuses: 0 done, 1 refused or failed, 2 usage error before any request, 130 interrupted.
Errors are one line. Invariants: an error of the API is printed with its status and its code; a
failure of the network, an interrupt and a closed pipe cause no traceback.
"""

import errno
import functools
import io
import os
import re
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import click

from ..api_client import (
    AnswerTooLarge,
    ApiClient,
    ApiResponse,
    NoResponse,
    RefusalHints,
    read_json,
    refusal,
    timeout_option,
    within,
)
from ..options import fail, fail_configuration
from .account import Account, choose_account
from .profile_file import BadProfiles, profile_option

INTERRUPTED: Final = 130
# A list of at most this many objects is read as a whole.
ROWS_MOST: Final = 20_000
PAGE: Final = 200
_NEXT: Final = re.compile(r"[?&]cursor=([A-Za-z0-9_%.~-]+)[^>]*>; rel=\"next\"")
_ROLE: Final = "its role or its list of actions does not allow it"

T = TypeVar("T")


class ApiRefused(NoResponse):
    """The server refused a request. The message has the status, the code and a hint."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Page:
    """Rows of a list, at most `limit`. `cursor` continues it, empty on the last page."""

    rows: list[dict[str, Any]]
    cursor: str
    limit: int


@dataclass(slots=True)
class Api:
    """Requests as one account. `doing` of each method is what failed, such as `list monitors`."""

    client: ApiClient
    account: Account
    # The clock of the server in its last answer.
    server_time: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def get(self, path: str, doing: str) -> Any:
        return await self.send("GET", path, None, doing)

    async def send(self, method: str, path: str, body: object, doing: str) -> Any:
        """Returns the decoded answer, None if it is empty. Raises ApiRefused, NoResponse."""
        return self._read(await self._ask(method, path, body, doing), doing)

    async def page(self, path: str, limit: int, cursor: str, doing: str) -> Page:
        """Returns a page of a list that begins after the cursor.

        A page that is too large is read with half of `limit`, then a quarter, down to one row.
        """
        sign = "&" if "?" in path else "?"
        following = f"&cursor={cursor}" if cursor else ""
        while True:
            asked = f"{path}{sign}limit={limit}{following}"
            try:
                answer = await self._ask("GET", asked, None, doing)
                break
            except AnswerTooLarge:
                if limit == 1:
                    raise
                limit //= 2
        rows = self._read(answer, doing)
        if not isinstance(rows, list):
            raise NoResponse(f"cannot {doing}: the answer is not from a Leadline server")
        found = _NEXT.search(answer.link)
        return Page(rows, found[1] if found else "", limit)

    async def pages(self, path: str, doing: str) -> list[dict[str, Any]]:
        """Returns all rows of a list that the server returns in pages."""
        rows: list[dict[str, Any]] = []
        cursor, limit = "", PAGE
        while len(rows) < ROWS_MOST:
            page = await self.page(path, limit, cursor, doing)
            rows += page.rows
            cursor, limit = page.cursor, page.limit
            if not cursor:
                return rows
        raise NoResponse(f"cannot {doing}: the list has more than {ROWS_MOST} entries")

    async def _ask(self, method: str, path: str, body: object, doing: str) -> ApiResponse:
        try:
            answer = await self.client.ask(method, path, body)
        except AnswerTooLarge as error:
            raise AnswerTooLarge(f"cannot {doing}: {error}") from error
        except NoResponse as error:
            raise NoResponse(f"cannot {doing}: {error}") from error
        if not 200 <= answer.status < 300:
            text = refusal_text(answer, self.account)
            raise ApiRefused(f"cannot {doing}: {text}", answer.status)
        self.server_time = _time_of(answer) or self.server_time
        return answer

    def _read(self, answer: ApiResponse, doing: str) -> Any:
        if not answer.body:
            return None
        found = read_json(answer.body, object)
        if not isinstance(found, dict | list):
            raise NoResponse(f"cannot {doing}: the answer is not from a Leadline server")
        return found


def _time_of(answer: ApiResponse) -> datetime | None:
    try:
        return parsedate_to_datetime(answer.date)
    except ValueError:
        return None


def refusal_text(answer: ApiResponse, account: Account) -> str:
    """Returns status and code of a response without success, with what to do about it."""
    hints = RefusalHints(
        redirect="check the address of the server",
        foreign="the answer is not from a Leadline server; check its address",
        unauthorized=f"the token of {account.source} is not accepted: {account.sign_in}",
        forbidden=f"the token of {account.source} lacks permission: {_ROLE}",
        missing=f"it does not exist, or {account.source} cannot see it",
    )
    return refusal(answer, hints)


@dataclass(frozen=True, slots=True)
class Session:
    """A call of a command: the account, and the options that all commands have."""

    account: Account
    as_json: bool
    timeout_seconds: float

    def run(self, work: Callable[[Api], Awaitable[T]], seconds: float | None = None) -> T:
        """Runs the requests of the command within its timeout. Raises NoResponse."""
        api = Api(self.account.server.client(), self.account)
        return within(self.timeout_seconds if seconds is None else seconds, lambda: work(api))


@contextmanager
def ended_quietly() -> Iterator[None]:
    """Turns each failure into one line and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        # The encoding of the terminal can lack letters of names.
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="replace")
    try:
        yield
    except NoResponse as error:
        raise fail(str(error)) from error
    except BadProfiles as error:
        raise fail_configuration([str(error)]) from error
    except UnicodeError as error:
        # No request contains such text, so nothing is changed.
        raise fail_configuration(["an argument or the input is not valid UTF-8"]) from error
    except OSError as error:
        # Click ends the command quietly if the reader of the output has ended.
        if error.errno == errno.EPIPE:
            raise
        raise fail(f"the output cannot be written: {error.strerror}") from error
    except click.UsageError as error:
        # Click reports errors of the command line, which have a context, with the usage.
        if error.ctx is not None:
            raise
        raise fail_configuration([error.format_message()]) from error
    except (KeyboardInterrupt, click.Abort):
        raise SystemExit(INTERRUPTED) from None
    except BaseExceptionGroup as group:
        if group.subgroup(KeyboardInterrupt) is None:
            raise
        raise SystemExit(INTERRUPTED) from None


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")


def api_command(function: Callable[..., None]) -> Callable[..., None]:
    """Adds --profile, --json and --timeout to a command, whose first argument is its Session."""

    @profile_option
    @json_option
    @timeout_option
    @functools.wraps(function)
    def called(profile: str | None, as_json: bool, timeout_seconds: float, **given: Any) -> None:
        with ended_quietly():
            account = choose_account(profile, os.environ)
            function(Session(account, as_json, timeout_seconds), **given)

    return called
