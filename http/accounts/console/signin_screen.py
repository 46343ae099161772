"""Sign-in page. It redirects only to a local path, regardless of the link."""

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import UNSET

from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.rules.totp import CODE_LONGEST
from ....storage.accounts.transactions.sign_in import UNAUTHORIZED
from ....storage.core.refusal import Refused, Unavailable
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.render import page, redirect
from ...ui.shell.error_pages import message_page
from ...ui.shell.page_layout import outer_frame_of
from ...wire.errors import Problem, problem_of
from ...wire.own_paths import local_path
from ...wire.route import Request, Response
from ..routes.local_login import TOTP_REQUIRED, log_in, read_auth_config
from ..schemas.accounts import AuthConfig, LoginRequest

_LONGEST: Final = 4_096
_WRONG: Final = "E-mail or password is wrong."
_WRONG_CODE: Final = "E-mail, password or code is wrong, or the code was already used."
_CODE: Final = "This account uses two-factor. Enter the code and repeat the password."
_DONE: Final = {
    "reset": "Password changed. Sign in with the new password.",
    "invited": "The account was created. Sign in.",
}
_PROBLEMS: Final = {
    "expired": "Sign-in expired. Try again.",
    "refused": "The provider did not confirm your identity.",
    "provider_unavailable": "The single sign-on provider does not respond. Try again later.",
    "not_allowed": "Accounts with an e-mail of this domain are not allowed.",
    "identity_taken": "This identity is linked to another account.",
    "off": "Single sign-on is not enabled.",
}


class SignInQuery(msgspec.Struct, frozen=True):
    """`done` names the completed action, `problem` the reason of a failed OIDC sign-in."""

    next: str = "/"
    done: str = ""
    problem: str = ""


async def render_signin(ask: Request) -> Response:
    done = _DONE.get(ask.query.done, "")
    problem = _PROBLEMS.get(ask.query.problem, "")
    return await _form(ask, local_path(ask.query.next), done=done, problem=problem)


async def enter(ask: Request) -> Response:
    """Signs in through the API handler, with its rate limit and its constant-time check."""
    to = local_path(value_of(ask, "next"))
    email, password = stripped(ask, "email"), value_of(ask, "password")
    code = stripped(ask, "code")
    if len(email) > 254 or len(password) > _LONGEST or len(code) > CODE_LONGEST:
        return await _form(ask, to, email=email[:254], error=_WRONG, status=401)
    body = LoginRequest(username=email, password=password, totp=code or UNSET)
    try:
        answer = await log_in(replace(ask, body=body))
    except Refused as refused:
        return await _refused(ask, to, email, problem_of(refused), gave_code=bool(code))
    except Problem as problem:
        return await _refused(ask, to, email, problem, gave_code=bool(code))
    return redirect(to, Set_Cookie=answer.headers["Set-Cookie"])


async def _refused(
    ask: Request, to: str, email: str, problem: Problem, *, gave_code: bool
) -> Response:
    """Shows the error. The code field is open if a code is required or was given."""
    if problem.code == TOTP_REQUIRED:
        return await _form(ask, to, email=email, error=_CODE, status=401, asks_code=True)
    if problem.code == UNAUTHORIZED:
        error = _WRONG_CODE if gave_code else _WRONG
        return await _form(ask, to, email=email, error=error, status=401, asks_code=gave_code)
    if problem.status == 429:
        wait = problem.headers.get("Retry-After", "60")
        error = f"Too many attempts from your address. Try again in {wait} s."
        answer = await _form(ask, to, email=email, error=error, status=429)
        return replace(answer, headers={**answer.headers, **problem.headers})
    raise problem


async def home(ask: Request) -> Response:
    """Redirects to the project that the browser opened last, or to the first visible one."""
    frame = await outer_frame_of(ask)
    if frame.place is not None:
        return redirect(frame.home)
    return message_page(
        frame,
        "No project access yet",
        "An organization admin can invite you with your e-mail address.",
    )


async def _form(
    ask: Request,
    to: str,
    *,
    email: str = "",
    error: str = "",
    status: int = 200,
    asks_code: bool = False,
    done: str = "",
    problem: str = "",
) -> Response:
    options = ask.context.options
    return page(
        "accounts/console/signin_screen.html",
        status=status,
        next=to,
        email=email,
        error=error,
        asks_code=asks_code,
        version=options.version,
        faults=ask.context.readiness().faults,
        local=options.local_enabled,
        ways=await _ways(ask),
        done=done,
        problem=problem,
    )


async def _ways(ask: Request) -> AuthConfig:
    """Returns the sign-in methods. The page also works without the database."""
    try:
        return await read_auth_config(ask)
    except Unavailable:
        local = ask.context.options.local_enabled
        return AuthConfig(local=local, oidc=False, password_reset=False)


_NOBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    page_route(
        method="GET",
        path="/",
        action=Permission(Need.ANYONE),
        handler=home,
        summary="Redirect to a project.",
    ),
    page_route(
        method="GET",
        path="/sign-in",
        action=_NOBODY,
        handler=render_signin,
        summary="The sign-in page.",
        query=SignInQuery,
    ),
    page_route(
        method="POST",
        path="/sign-in",
        action=_NOBODY,
        handler=enter,
        summary="Signs in by the form.",
    ),
)
