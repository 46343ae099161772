"""Error page of a refusal, inside the shell for a signed-in user.

Without a session, a page that requires one leads to the sign-in page.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from ....storage.core.refusal import Refused, Unavailable
from ...wire.app_context import AppContext
from ...wire.authenticate import authenticate
from ...wire.errors import LOCKED, Problem
from ...wire.route import Response
from ..render import page, redirect
from .page_layout import OuterLayout, outer_frame

SIGN_IN = "/sign-in"

_WORDS = {
    401: ("Sign in first", "This screen requires a sign-in."),
    403: ("Permission denied", "Your role does not allow it."),
    404: (
        "This page does not exist",
        "It may have been deleted or renamed, or it belongs to another project.",
    ),
    413: ("The file or text is too large", "The form that you sent states the largest size."),
    429: ("Too many requests", "Wait a minute, then try again."),
    503: ("Database unavailable", "No change was saved. Try again in a moment."),
}
_LOCKED: Final = (
    "Not saved. Another change, such as the application of a bundle or a deletion, locks what you"
    " change. Go back and try again in a moment."
)
# Statuses whose page is inside the shell. The others can be those of an overloaded process, which
# should not ask the database for a shell.
_IN_SHELL: Final = frozenset({400, 403, 404, 409, 500})


async def problem_page(
    problem: Problem,
    path: str,
    context: AppContext,
    headers: Mapping[str, str],
    *,
    in_shell: bool = True,
) -> Response:
    """Returns the page, outside the shell unless `in_shell`, which needs the database."""
    if problem.code == "unauthorized":
        return redirect(f"{SIGN_IN}?next={quote(path, safe='')}")
    title, words = _WORDS.get(problem.status, ("Request rejected", problem.code))
    if problem.code == LOCKED:
        title, words = "Another change is running", _LOCKED
    if problem.status == 500:
        title, words = "Internal error", "The error was logged."
    in_shell = in_shell and problem.status in _IN_SHELL
    frame = await _frame(context, headers) if in_shell else None
    if frame is None:
        answer = page("ui/shell/problem.html", status=problem.status, title=title, words=words)
    else:
        answer = message_page(frame, title, words, problem.status)
    return replace(answer, headers={**answer.headers, **problem.headers})


def message_page(frame: OuterLayout, title: str, words: str, status: int = 200) -> Response:
    """Returns a screen that only contains a message."""
    return page(
        "ui/shell/problem_screen.html", status=status, frame=frame, title=title, words=words
    )


async def _frame(context: AppContext, headers: Mapping[str, str]) -> OuterLayout | None:
    """Returns the shell of the signed-in user; None without a session or a database."""
    try:
        identified = await authenticate(context, headers)
        if identified is None or not identified.by_cookie:
            return None
        async with context.pool.transaction("console_shell", read_only=True) as tx:
            return await outer_frame(tx, identified.principal, headers, "/")
    except (Problem, Refused, Unavailable):
        return None
