"""Page of an invitation link, for signed-in users and for people without an account.

A GET does not accept, as mail programs fetch links.
"""

from dataclasses import replace
from typing import Final

from msgspec import UNSET

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.refusal import Refused
from ...auth.csrf import is_cross_site
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, value_of
from ...ui.formatting import moment
from ...ui.render import page, redirect
from ...wire.errors import Problem, problem_of
from ...wire.route import Request, Response, Route
from ..console.role_text import ROLE_WORDS
from ..routes import invitations as api
from ..routes.auth_policy import configured_policy
from ..schemas.invitations import AcceptInvitation

PATH: Final = "/invitations/{token}"
_LONGEST: Final = 4_096
_TEMPLATE: Final = "accounts/form/invitation_accept.html"


async def show_invitation(ask: Request) -> Response:
    return await _render(ask)


async def accept_invitation(ask: Request) -> Response:
    """Accepts through the API handler."""
    if is_cross_site(ask.method, ask.headers, ask.context.options.public_base_url):
        raise Problem("forbidden")
    is_new = await api.session_of(ask) is None
    password = value_of(ask, "password")
    if len(password) > _LONGEST:
        return await _render(ask, "The password is too long. Choose a shorter one.", 400)
    body = AcceptInvitation(
        display_name=stripped(ask, "display_name")[:200], password=password or UNSET
    )
    try:
        await api.accept(replace(ask, body=body))
    except Refused as refused:
        problem = problem_of(refused)
    except Problem as caught:
        problem = caught
    else:
        return redirect("/sign-in?done=invited" if is_new else "/")
    if problem.status == 429:
        seconds = problem.headers.get("Retry-After", "60")
        answer = await _render(
            ask, f"Too many attempts from your address. Try again in {seconds} s.", 429
        )
        return replace(answer, headers={**answer.headers, **problem.headers})
    if problem.code == "unauthorized":
        return await _render(ask, "Sign in with your account to accept.", 400)
    field, colon, rule = problem.code.partition(": ")
    if not colon:
        raise problem
    labels = {"password": "Password", "display_name": "Name", "invitation": "The invitation"}
    return await _render(ask, f"{labels.get(field, field)}: {rule}.", 400)


async def _render(ask: Request, error: str = "", status: int = 200) -> Response:
    context = ask.context
    try:
        row = await api.open_invitation(ask)
    except Problem:
        return page(_TEMPLATE, status=404, row=None)
    signed_in = await api.session_of(ask)
    async with context.pool.transaction("read_auth_policy", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
        now = tx.now
    email = "" if signed_in is None else signed_in.user.email
    return page(
        _TEMPLATE,
        status=status,
        row=row,
        role=ROLE_WORDS[row.role],
        until=moment(row.expires_at, now),
        path=ask.path,
        email=email,
        is_same=email.lower() == row.email.lower(),
        local=context.options.local_enabled,
        shortest=policy.min_password_len,
        typed=stripped(ask, "display_name") or row.display_name,
        error=error,
    )


_NOBODY: Final = Permission(Need.NOBODY)

ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=_NOBODY,
        handler=show_invitation,
        summary="An invitation, and how to accept it.",
    ),
    page_route(
        method="POST",
        path=PATH,
        action=_NOBODY,
        handler=accept_invitation,
        summary="Accept an invitation.",
    ),
)
