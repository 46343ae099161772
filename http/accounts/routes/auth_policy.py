"""Routes of the sign-in policy, which global admins set."""

from typing import Final

from msgspec import UNSET

from ....storage.accounts.queries.auth_policy import select_auth_policy
from ....storage.accounts.rules.auth_policy import AuthPolicy as Policy
from ....storage.accounts.rules.auth_policy import plain_domains
from ....storage.accounts.transactions.put_auth_policy import EDIT, put_auth_policy
from ...wire.options import HttpOptions
from ...wire.route import Request, setting_routes
from ..schemas.settings import AuthPolicy, PutAuthPolicy

_OWN: Final = "/api/v1/settings/auth-policy"


def configured_policy(options: HttpOptions) -> Policy:
    """Returns the policy of the configuration file, in effect while no policy is stored."""
    return Policy(
        min_password_len=options.min_password_length,
        session_ttl_seconds=options.session_ttl_seconds,
    )


async def read(ask: Request) -> AuthPolicy:
    async with ask.context.pool.transaction("read_auth_policy", read_only=True) as tx:
        found = await select_auth_policy(tx)
    return _policy_json(
        found or configured_policy(ask.context.options), configured=found is not None
    )


async def put(ask: Request) -> AuthPolicy:
    policy = _policy_of(ask.body, configured_policy(ask.context.options))
    can_seal = ask.context.keyring.can_seal
    async with ask.context.pool.transaction("put_auth_policy") as tx:
        await put_auth_policy(tx, ask.who, policy, can_seal=can_seal)
    return _policy_json(policy, configured=True)


def _policy_of(body: PutAuthPolicy, configured: Policy) -> Policy:
    """Returns the policy of a request. Absent fields get the configured values."""
    shortest, ttl = body.min_password_len, body.session_ttl_seconds
    return Policy(
        min_password_len=configured.min_password_len if shortest is UNSET else shortest,
        session_ttl_seconds=configured.session_ttl_seconds if ttl is UNSET else ttl,
        require_totp=body.require_totp,
        allowed_email_domains=plain_domains(body.allowed_email_domains),
    )


def _policy_json(found: Policy, *, configured: bool) -> AuthPolicy:
    return AuthPolicy(
        configured=configured,
        min_password_len=found.min_password_len,
        session_ttl_seconds=found.session_ttl_seconds,
        require_totp=found.require_totp,
        allowed_email_domains=list(found.allowed_email_domains),
    )


ROUTES: Final = setting_routes(
    _OWN,
    read,
    put,
    EDIT,
    tag="auth_policy",
    body=PutAuthPolicy,
    answer=AuthPolicy,
    summaries=(
        "Read the sign-in policy.",
        "Set the whole sign-in policy.",
    ),
)
