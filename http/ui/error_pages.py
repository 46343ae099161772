"""Error page of a refusal. Without a session it leads to the sign-in page."""

from dataclasses import replace
from urllib.parse import quote

from ..wire.errors import Problem
from ..wire.route import Response
from .render import page, redirect

SIGN_IN = "/sign-in"

_WORDS = {
    401: ("Sign in first", "This screen requires a sign-in."),
    403: ("Permission denied", "Your role in this project does not allow it."),
    404: ("Page not found", "The page does not exist, or you are not a member of it."),
    429: ("Too many requests", "Wait a minute, then try again."),
    503: ("Database unavailable", "Not saved. Try again in a moment."),
}


def problem_page(problem: Problem, path: str) -> Response:
    if problem.code == "unauthorized":
        return redirect(f"{SIGN_IN}?next={quote(path, safe='')}")
    title, words = _WORDS.get(problem.status, ("Request rejected", problem.code))
    if problem.status == 500:
        title, words = "Internal error", "The error was logged."
    answer = page("ui/problem.html", status=problem.status, title=title, words=words)
    return replace(answer, headers={**answer.headers, **problem.headers})
