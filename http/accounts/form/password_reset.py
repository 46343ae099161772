"""Password reset by e-mail: request form, and form of the link.

A GET of the link does not spend its token, as mail programs fetch links.
"""

from dataclasses import replace
from typing import Final

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.naming import email_fault
from ....storage.core.refusal import Refused
from ...auth.csrf import is_cross_site
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.render import page, redirect
from ...wire.errors import Problem, problem_of
from ...wire.mail_config import mailing_now
from ...wire.route import Request, Response
from ..routes import password_resets as api
from ..routes.auth_policy import configured_policy
from ..schemas.accounts import ResetConfirm, ResetRequest

ASK: Final = "/reset"
LINK: Final = "/reset/{token}"
DONE: Final = "/sign-in?done=reset"
_LONGEST: Final = 4_096


async def show_asking(ask: Request) -> Response:
    await _expect_offered(ask)
    return _asking()


async def request_letter(ask: Request) -> Response:
    _expect_own_form(ask)
    email = stripped(ask, "email")
    if email_fault(email) is not None:
        return _asking(
            email[:254], "E-mail: not a valid address. Enter one such as name@example.com.", 400
        )
    try:
        await api.request_reset(replace(ask, body=ResetRequest(email=email)))
    except Problem as problem:
        if problem.status != 429:
            raise
        answer = _asking(email, _wait(problem), 429)
        return replace(answer, headers={**answer.headers, **problem.headers})
    return page("accounts/form/password_reset.html", asked=True, email=email, error="")


async def show_link(ask: Request) -> Response:
    await _expect_offered(ask)
    return await _choosing(ask)


async def choose(ask: Request) -> Response:
    _expect_own_form(ask)
    new, again = value_of(ask, "new"), value_of(ask, "again")
    if new != again:
        return await _choosing(
            ask, "The passwords do not match. Type the same password twice.", 400
        )
    if len(new) > _LONGEST:
        return await _choosing(ask, "The password is too long. Choose a shorter one.", 400)
    body = ResetConfirm(token=ask.words["token"], new_password=new)
    try:
        await api.confirm_reset(replace(ask, body=body))
    except Refused as refused:
        problem = problem_of(refused)
    except Problem as caught:
        problem = caught
    else:
        return redirect(DONE)
    if problem.status == 429:
        answer = await _choosing(ask, _wait(problem), 429)
        return replace(answer, headers={**answer.headers, **problem.headers})
    field, colon, rule = problem.code.partition(": ")
    if not colon:
        raise problem
    if field == "token":
        return page(
            "accounts/form/password_reset_link.html",
            status=400,
            is_gone=True,
            path="",
            shortest=0,
            error="",
        )
    return await _choosing(ask, f"New password: {rule}.", 400)


async def _expect_offered(ask: Request) -> None:
    """Raises Problem `not_found` without a mail server or with local sign-in disabled."""
    offered = ask.context.options.local_enabled and (await mailing_now(ask.context)).can_mail
    if not offered:
        raise Problem("not_found")


def _expect_own_form(ask: Request) -> None:
    if is_cross_site(ask.method, ask.headers, ask.context.options.public_base_url):
        raise Problem("forbidden")


def _wait(problem: Problem) -> str:
    seconds = problem.headers.get("Retry-After", "60")
    return f"Too many attempts from your address. Try again in {seconds} s."


def _asking(email: str = "", error: str = "", status: int = 200) -> Response:
    return page(
        "accounts/form/password_reset.html", status=status, asked=False, email=email, error=error
    )


async def _choosing(ask: Request, error: str = "", status: int = 200) -> Response:
    context = ask.context
    async with context.pool.transaction("read_auth_policy", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
    return page(
        "accounts/form/password_reset_link.html",
        status=status,
        is_gone=False,
        path=ask.path,
        shortest=policy.min_password_len,
        error=error,
    )


_NOBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    page_route(
        method="GET",
        path=ASK,
        action=_NOBODY,
        handler=show_asking,
        summary="Form that requests a password reset.",
    ),
    page_route(
        method="POST",
        path=ASK,
        action=_NOBODY,
        handler=request_letter,
        summary="Request a password reset.",
    ),
    page_route(
        method="GET",
        path=LINK,
        action=_NOBODY,
        handler=show_link,
        summary="Form that sets a new password.",
    ),
    page_route(
        method="POST",
        path=LINK,
        action=_NOBODY,
        handler=choose,
        summary="Set a new password with the reset link.",
    ),
)
