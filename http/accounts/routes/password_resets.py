"""Password reset by e-mail. The response is equal for every address."""

from typing import Final

from ....storage.accounts.queries.auth_policy import auth_policy_in_force
from ....storage.accounts.rules.access import Need, Permission
from ....storage.accounts.transactions.reset_password_by_mail import (
    ask_for_reset,
    expect_good,
    finish_reset,
)
from ...auth.passwords import rule_broken
from ...wire.errors import Problem
from ...wire.mail_config import mailing_now
from ...wire.route import Request, Route
from ..schemas.accounts import ResetConfirm, ResetRequest, SignedIn
from .auth_policy import configured_policy
from .local_login import count_attempt

_NOBODY: Final = Permission(Need.NOBODY)
_SMALL: Final = 64 << 10


async def request_reset(ask: Request) -> SignedIn:
    """Requests a reset.

    Raises: Problem `not_found`, if local sign-in is disabled; `rate_limited`; `mail_unavailable`.
    """
    context = ask.context
    if not context.options.local_enabled:
        raise Problem("not_found")
    count_attempt(ask)
    if not (await mailing_now(context)).can_mail:
        raise Problem("mail_unavailable")
    async with context.pool.statement("request_password_reset") as tx:
        await ask_for_reset(tx, ask.body.email.strip())
    context.on_reset_asked()
    return SignedIn(ok=True)


async def confirm_reset(ask: Request) -> None:
    """Sets the new password. A refused password does not spend the token."""
    context, body = ask.context, ask.body
    if not context.options.local_enabled:
        raise Problem("not_found")
    count_attempt(ask)
    async with context.pool.transaction("check_reset_token", read_only=True) as tx:
        policy = await auth_policy_in_force(tx, configured_policy(context.options))
        await expect_good(tx, body.token)
    broken = rule_broken(body.new_password, policy.min_password_len)
    if broken is not None:
        raise Problem(f"new_password: {broken}")
    hashed = await context.passwords.hash(body.new_password)
    await context.pool.transact("finish_reset", lambda tx: finish_reset(tx, body.token, hashed))


ROUTES: Final = (
    Route(
        method="POST",
        path="/auth/local/reset/request",
        action=_NOBODY,
        handler=request_reset,
        summary="Request a password reset by e-mail; the response is the same for every address.",
        tag="password_resets",
        body=ResetRequest,
        answer=SignedIn,
        body_largest=_SMALL,
        also=(404, 429, 503),
    ),
    Route(
        method="POST",
        path="/auth/local/reset/confirm",
        action=_NOBODY,
        handler=confirm_reset,
        summary="Set a new password with the token of the e-mail; ends all sessions.",
        tag="password_resets",
        body=ResetConfirm,
        status=204,
        body_largest=_SMALL,
        also=(404, 429),
    ),
)
