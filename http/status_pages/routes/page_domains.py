"""The domain of a status page: its claim, the check of its proof, and the proof that is missing."""

import os

from ....probes.check.domain_evidence import FILE_PATH, RECORD_PREFIX, TEXT_PREFIX
from ....storage.engine.pools import Tx
from ....storage.status_pages.queries.status_pages import select_status_page
from ....storage.status_pages.rows import DomainClaim, PageRow
from ....storage.status_pages.rules.page_domain import (
    TOKEN_RANDOM_BYTES,
    MissingProof,
    domain_fault,
    domain_token,
)
from ....storage.status_pages.transactions.set_domain import set_domain
from ...wire.options import HttpOptions
from ...wire.route import Request
from ...wire.schema import instant_text, known
from ...wire.scope_keys import org_of
from ..schemas.status_pages import DomainFile, DomainProof, DomainRecord


async def apply_domain(ask: Request, domain: str) -> PageRow:
    """Claims a domain for the page of the path, checks its proof, or removes it.

    The first request claims the domain, and the next ones with the same domain check the proof. The
    record does not exist at the claim, and a name server would remember that for a while.

    Raises:
        Refused not_found, forbidden, invalid, domain_taken.
        Problem at the limits of checks.
    """
    name = domain.strip().lower()
    context = ask.context
    reserved = context.options.own_hosts | await context.host_names.known()
    seen = None
    if await _is_claimed(ask, name) and domain_fault(name, reserved) is None:
        with context.domain_checks.permit(str(org_of(ask)), context.clock()):
            seen = await context.look_at_domain(name)
    token = domain_token(os.urandom(TOKEN_RANDOM_BYTES))

    async def work(tx: Tx) -> PageRow:
        return await set_domain(tx, ask.who, ask.ids["pageID"], name, reserved, token, seen)

    # Two pages that take each other's domain at the same time are a conflict.
    return await context.pool.transact("set_domain", work)


async def _is_claimed(ask: Request, domain: str) -> bool:
    async with ask.context.pool.statement("read_domain_claim") as tx:
        row = await select_status_page(tx, ask.ids["pageID"])
    return row is not None and row.claim is not None and row.claim.domain == domain


def missing_proof(claim: DomainClaim, options: HttpOptions) -> DomainProof:
    """Returns the records and the file of which one proves the claim."""
    name = RECORD_PREFIX + claim.domain
    text = TEXT_PREFIX + claim.token
    host = options.public_host
    alias = DomainRecord(name=name, value=f"{claim.token}.{host}") if "." in host else None
    return DomainProof(
        domain=claim.domain,
        txt=DomainRecord(name=name, value=text),
        cname=known(alias),
        file=DomainFile(url=f"http://{claim.domain}{FILE_PATH}", content=text),
        checked_at=instant_text(claim.checked_at),
        reason=known(None if claim.reason is None else MissingProof(claim.reason)),
    )
