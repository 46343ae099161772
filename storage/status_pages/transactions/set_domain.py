"""Domain of a status page: it is claimed first, and serves the page after its proof."""

from collections.abc import Collection
from uuid import UUID

from ....probes.check.domain_evidence import DomainEvidence
from ...accounts.rules.access import Principal
from ...accounts.tables.audit_entries import insert_audits
from ...accounts.transactions.authorize import audit
from ...core.refusal import Refused, expect
from ...engine.pools import Tx
from ..rows import DomainClaim, PageRow
from ..rules.page_domain import (
    LOCAL_FAULT,
    DomainHolder,
    MissingProof,
    ProofOutcome,
    domain_fault,
    judge_proof,
)
from ..tables import status_page_domains as page_domains
from ..tables.status_page_domains import HolderRow
from ..tables.status_pages import raise_generation
from .edit_pages import find_page, lock_page, page_target, written

# Actor of the audit entry of an organization that loses a domain to another one.
_INSTALLATION = "Leadline"
_TAKEN = "domain_taken"


async def set_domain(
    tx: Tx,
    principal: Principal,
    page: UUID,
    domain: str,
    reserved: Collection[str],
    token: str,
    seen: DomainEvidence | None = None,
) -> PageRow:
    """Claims a domain for a page, or serves the page there if the evidence proves the claim.

    Empty removes the domain and the claim. The domain of the page is served until another one is
    proved. A new claim gets `token`. `reserved` are the names of this installation. Conflicted can
    be repeated.

    Raises:
        Refused not_found, forbidden, invalid, domain_taken.
    """
    row = await lock_page(tx, await find_page(tx, principal, page))
    expect("domain", domain_fault(domain, reserved) if domain else None)
    claim = row.claim
    is_proved = domain == row.domain and row.is_domain_proved
    if claim is None and (is_proved or domain == (row.domain or "") == ""):
        return row
    if is_proved or not domain:
        return await _keep(tx, principal, row, domain)
    holder = await page_domains.select_holder(tx, domain)
    if holder is not None and holder.page == row.id and holder.org == row.org:
        # The domain was set before proofs existed.
        holder = None
    if holder is not None and holder.org == row.org:
        raise Refused(_TAKEN)
    if claim is None or claim.domain != domain:
        await page_domains.upsert_claim(tx, row.org, row.id, domain, token)
        return await _record(tx, principal, row, "status_page.claim_domain", domain)
    if seen is None:
        return row
    return await _check(tx, principal, row, claim, holder, seen)


async def _keep(tx: Tx, principal: Principal, row: PageRow, domain: str) -> PageRow:
    """Removes the claim, and the domain too if `domain` is empty."""
    if domain:
        await page_domains.clear_claim(tx, row.org, row.id)
    else:
        await page_domains.clear_domains(tx, row.org, row.id)
    return await _record(tx, principal, row, "status_page.set_domain", domain)


async def _check(
    tx: Tx,
    principal: Principal,
    row: PageRow,
    claim: DomainClaim,
    holder: HolderRow | None,
    seen: DomainEvidence,
) -> PageRow:
    expect("domain", LOCAL_FAULT if seen.is_local else None)
    rival = None if holder is None else DomainHolder(holder.token)
    verdict = judge_proof(claim.token, rival, seen)
    if verdict is ProofOutcome.TAKEN:
        raise Refused(_TAKEN)
    if isinstance(verdict, MissingProof):
        await page_domains.note_check(tx, row.org, row.id, verdict)
        return await written(tx, row.uid)
    if holder is not None:
        target = f"status_page:{holder.page_uid} domain={claim.domain}"
        lost = (holder.org, "status_page.lose_domain", target)
        await insert_audits(tx, [lost], None, _INSTALLATION, via_token=False)
        if not await page_domains.release_domain(tx, holder, claim.domain):
            raise Refused(_TAKEN)
    if not await page_domains.insert_domain(tx, row.org, row.id, claim.domain, claim.token):
        # The page of another organization proved it at the same time.
        raise Refused(_TAKEN)
    return await _record(tx, principal, row, "status_page.set_domain", claim.domain)


async def _record(tx: Tx, principal: Principal, row: PageRow, action: str, domain: str) -> PageRow:
    await raise_generation(tx, row)
    await audit(tx, principal, row.org, action, f"{page_target(row)} domain={domain or 'none'}")
    return await written(tx, row.uid)
