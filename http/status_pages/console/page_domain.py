"""The custom domain in the editor of a status page: the missing proof as values to copy."""

from dataclasses import dataclass
from typing import Final

from ....storage.core.instant import Instant
from ....storage.status_pages.rows import PageRow
from ....storage.status_pages.rules.page_domain import MissingProof
from ...ui.formatting import Moment, moment
from ...wire.options import HttpOptions
from ..routes.page_domains import missing_proof

_REASONS: Final = {
    MissingProof.NOT_FOUND: "neither the record nor the file exists.",
    MissingProof.OTHER_TOKEN: "a record or the file exists, but with another value.",
    MissingProof.NO_ANSWER: "the name servers did not answer, so it is unknown whether the record"
    " exists.",
    MissingProof.RECORD_NEEDED: "the file exists, but another page has the domain. Only a DNS"
    " record moves it.",
}


@dataclass(frozen=True, slots=True)
class ProofPart:
    """A way to prove the domain: a label and the values of its fields."""

    label: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class DomainProofItem:
    """Missing proof of a domain. `checked` and `reason` are those of the last check."""

    domain: str
    parts: tuple[ProofPart, ...]
    checked: Moment | None
    reason: str


def domain_proof_item(row: PageRow, options: HttpOptions, now: Instant) -> DomainProofItem | None:
    claim = row.claim
    if claim is None:
        return None
    proof = missing_proof(claim, options)
    parts = [ProofPart("TXT record", (("name", proof.txt.name), ("value", proof.txt.value)))]
    if proof.cname:
        parts.append(
            ProofPart("CNAME record", (("name", proof.cname.name), ("target", proof.cname.value)))
        )
    file = ProofPart("File", (("URL", proof.file.url), ("content", proof.file.content)))
    return DomainProofItem(
        claim.domain,
        (*parts, file),
        None if claim.checked_at is None else moment(claim.checked_at, now),
        _REASONS.get(MissingProof(claim.reason), "") if claim.reason else "",
    )
