"""Error page of a refusal. Without a session it leads to the sign-in page."""

from dataclasses import replace
from urllib.parse import quote

from ..wire.errors import Problem
from ..wire.route import Response
from .render import page, redirect

SIGN_IN = "/sign-in"

_WORDS = {
    401: ("Sign in first", "This page is for people who are signed in."),
    403: ("You may not do this", "Your role in this project does not allow it."),
    404: ("There is nothing here", "The page does not exist, or you are not a member of it."),
    429: ("Too many tries", "Wait a minute, then try again."),
    503: ("Leadline is not ready", "Nothing was changed. Try again in a moment."),
}


def problem_page(problem: Problem, path: str) -> Response:
    if problem.code == "unauthorized":
        return redirect(f"{SIGN_IN}?next={quote(path, safe='')}")
    title, words = _WORDS.get(problem.status, ("This could not be done", problem.code))
    if problem.status == 500:
        title, words = "Something of ours failed", "It is in the log. Nothing of yours was lost."
    answer = page("ui/problem.html", status=problem.status, title=title, words=words)
    return replace(answer, headers={**answer.headers, **problem.headers})
