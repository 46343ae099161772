"""Account of the user. Each button calls the API handler of its action.

A TOTP secret and recovery codes are shown once: only the response to the form contains them.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import segno
from markupsafe import Markup

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.queries.oidc_settings import select_sign_on_shown
from ....storage.accounts.queries.own_account import select_own_sessions, select_own_user
from ....storage.accounts.queries.totp_factors import is_enabled
from ....storage.accounts.rules.totp import CODE_LONGEST, RECOVERY_CODES
from ....storage.accounts.transactions.edit_totp import OWN
from ....storage.core.refusal import Refused
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, value_of, whole_number
from ...ui.formatting import moment
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...ui.shown_time import local, twelve_hours
from ...ui.time_inputs import zone_choices
from ...wire.errors import Problem, problem_of
from ...wire.route import Request, Response, Route
from ..routes import me as api
from ..routes.auth_policy import configured_policy
from ..routes.oidc_login import Stopped, begin
from ..schemas.accounts import (
    ChangePasswordRequest,
    PutTimePreference,
    TOTPDisableRequest,
    TOTPEnableRequest,
    TOTPEnrollResponse,
)

PATH: Final = "/profile"
_LONGEST: Final = 4_096
_SAID: Final = {
    "encryption_key_missing": "Secrets need security.encryption_key.",
    "totp_enabled": "Two-factor is already enabled.",
    "revision_conflict": "The password was changed in another session. Try again.",
    "not_found": "The session has already ended.",
    "off": "Single sign-on is not enabled.",
    "provider_unavailable": "The single sign-on provider does not respond. The account was"
    " not changed.",
}


@dataclass(frozen=True, slots=True)
class ProfileFormResult:
    """`form` is the form that was refused, or whose result is shown."""

    form: str = ""
    wrong: str = ""
    done: str = ""
    enrolling: TOTPEnrollResponse | None = None
    recovery: Sequence[str] = ()


class ProfileQuery(msgspec.Struct, frozen=True):
    """`done` names the completed action."""

    done: str = ""


_DONE: Final = {
    "times": "Saved. The console shows times in this zone.",
    "password": "Password changed. All other sessions have ended.",
    "disable": "Two-factor is disabled.",
    "end": "Session ended.",
    "link": "Single sign-on is linked to this account.",
}


async def render_profile(ask: Request) -> Response:
    return await _render(ask, ProfileFormResult(done=_DONE.get(ask.query.done, "")))


async def submit_profile(ask: Request) -> Response:
    form = value_of(ask, "act")
    try:
        return await _apply(ask, form)
    except Refused as refused:
        problem = problem_of(refused)
    except Problem as caught:
        problem = caught
    if problem.status in (401, 403):
        raise problem
    if problem.status == 429:
        wait = problem.headers.get("Retry-After", "60")
        wrong = f"Too many attempts from your address. Try again in {wait} s."
        reply = await _render(ask, ProfileFormResult(form, wrong), status=429)
        return replace(reply, headers={**reply.headers, **problem.headers})
    field, colon, rule = problem.code.partition(": ")
    label = _LABELS.get(field, field)
    wrong = _SAID.get(problem.code) or (f"{label} {rule}." if colon else problem.code)
    return await _render(ask, ProfileFormResult(form, wrong), status=400)


_LABELS: Final = {
    "current_password": "Current password:",
    "new_password": "New password:",
    "password": "Password:",
    "code": "Code:",
    "time_zone": "Time zone:",
    "hour_clock": "Time format:",
}


async def _apply(ask: Request, form: str) -> Response:
    match form:
        case "times":
            given_times = PutTimePreference(
                time_zone=value_of(ask, "time_zone"),
                hour_clock=whole_number("hour_clock", value_of(ask, "hour_clock")),
            )
            await api.write_preferences(replace(ask, body=given_times))
        case "password":
            new = _secret(ask, "new")
            if new != _secret(ask, "again"):
                raise Problem("new_password: does not match its repetition")
            given = ChangePasswordRequest(
                current_password=_secret(ask, "current"), new_password=new
            )
            await api.write_password(replace(ask, body=given))
        case "enrol":
            return await _render(
                ask, ProfileFormResult(form, enrolling=await api.enrol_factor(ask))
            )
        case "enable":
            code = stripped(ask, "code")[: CODE_LONGEST + 1]
            if not code or len(code) > CODE_LONGEST:
                raise Problem("code: wrong code")
            made = await api.enable_factor(replace(ask, body=TOTPEnableRequest(code=code)))
            return await _render(ask, ProfileFormResult(form, recovery=made.recovery_codes))
        case "disable":
            given_up = TOTPDisableRequest(password=_secret(ask, "password"))
            await api.disable_factor(replace(ask, body=given_up))
        case "link":
            return await _to_provider(ask)
        case "end":
            ids = {"sessionID": uuid_given(value_of(ask, "session"))}
            await api.delete_session(replace(ask, ids=ids))
        case _:
            raise Problem("Unknown action")
    return redirect(f"{PATH}?done={form}")


async def _to_provider(ask: Request) -> Response:
    """Returns an intermediate page, as the policy forbids a form to end at another site."""
    async with ask.context.pool.transaction("console_profile", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
    if user is None:
        raise Problem("unauthorized")
    try:
        begun = await begin(ask, PATH, link_user=user.id)
    except Stopped as stopped:
        raise Problem(stopped.word) from None
    answer = page("accounts/console/onward.html", onward=begun.address)
    return replace(answer, headers={**answer.headers, "Set-Cookie": begun.cookie})


def _secret(ask: Request, name: str) -> str:
    text = value_of(ask, name)
    if len(text) > _LONGEST:
        raise Problem("password: is too long")
    return text


async def _render(ask: Request, said: ProfileFormResult, *, status: int = 200) -> Response:
    assert ask.session_hash is not None, "only a session comes here"
    async with ask.context.pool.transaction("console_profile", read_only=True) as tx:
        user = await select_own_user(tx, ask.who)
        if user is None:
            raise Problem("unauthorized")
        has_factor = await is_enabled(tx, user.id)
        policy = await auth_policy_in_force(tx, configured_policy(ask.context.options))
        sign_on = (await select_sign_on_shown(tx, ask.context.options.sign_on)).settings
        present = tx.now
        sessions, current = await select_own_sessions(tx, ask.who, ask.session_hash)
    enrolling = said.enrolling
    return page(
        "accounts/console/profile.html",
        frame=await outer_frame_of(ask),
        status=status,
        path=PATH,
        user=user,
        has_password=user.password is not None,
        has_factor=has_factor,
        owes=ask.who.owes_second_factor,
        sessions=sessions,
        current=current,
        sign_on=sign_on,
        said=said,
        qr=None if enrolling is None else qr_code(enrolling.uri),
        recovery_most=RECOVERY_CODES,
        shortest=policy.min_password_len,
        shown=lambda at: moment(at, present),
        zones=zone_choices(ask.who.time_zone),
        zone=ask.who.time_zone,
        clocks={24: f"{local(present):%H:%M}", 12: twelve_hours(local(present))},
        hours=ask.who.hour_clock,
    )


def qr_code(text: str) -> Markup:
    """Returns an SVG that the Content-Security-Policy permits: without style and class.

    The SVG contains only modules, and no text of a user.
    """
    written = io.BytesIO()
    segno.make(text, error="m", micro=False).save(
        written,
        kind="svg",
        xmldecl=False,
        svgns=False,
        svgclass=None,
        lineclass=None,
        omitsize=True,
        nl=False,
        dark="#000",
        light="#fff",
    )
    return Markup(written.getvalue().decode())  # noqa: S704 - made of modules, not of text


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=OWN,
        handler=render_profile,
        summary="Your account.",
        query=ProfileQuery,
    ),
    page_route(
        method="POST",
        path=PATH,
        action=OWN,
        handler=submit_profile,
        summary="Change your account.",
    ),
)
