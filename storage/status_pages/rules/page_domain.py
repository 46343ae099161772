"""Domains of status pages: which names a page can have, and what proves that its owner agrees.

A domain serves a page only after its proof: a record of its DNS, or a file of its web server, that
contains the token of the page's claim. Each claim has a token of its own, so that neither a proof
nor a record that sends a domain to this installation helps another page. Several pages can claim a
domain, and the first proof decides.

A proved domain moves to a page of another organization if the DNS contains the record of the new
page and no longer that of the old one. Domains that were set before proofs existed have no token.
"""

import base64
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ....probes.check.domain_evidence import DomainEvidence

DOMAIN_LONGEST: Final = 253
LABEL_LONGEST: Final = 63
# 160 bits are 32 characters of base32, which fit into a label.
TOKEN_RANDOM_BYTES: Final = 20
LOCAL_FAULT: Final = "resolves to a loopback address"

_LABEL: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-")
# Names that every host resolves for itself (RFC 6761, RFC 6762).
_LOCAL_TOPS: Final = frozenset({"localhost", "local", "localdomain"})


class ProofOutcome(StrEnum):
    """PROVED serves the domain. TAKEN is refused: its holder has a record too."""

    PROVED = "proved"
    TAKEN = "taken"


class MissingProof(StrEnum):
    """Why a check found no proof."""

    NOT_FOUND = "not_found"
    OTHER_TOKEN = "other_token"
    NO_ANSWER = "no_answer"
    RECORD_NEEDED = "record_needed"


ProofVerdict = ProofOutcome | MissingProof


@dataclass(frozen=True, slots=True)
class DomainHolder:
    """Page of another organization that has the domain. `token` is None without a proof."""

    token: str | None


def domain_fault(domain: str, reserved: Collection[str]) -> str | None:
    """Returns the fault of a lower-case host name. `reserved` are names of this installation."""
    labels = domain.split(".")
    is_name = (
        len(domain) <= DOMAIN_LONGEST
        and len(labels) >= 2
        and all(0 < len(label) <= LABEL_LONGEST for label in labels)
        and all(set(label) <= _LABEL and label.strip("-") == label for label in labels)
        and not labels[-1].isdigit()
    )
    if not is_name:
        return "must be a host name, such as status.example.com"
    if labels[-1] in _LOCAL_TOPS:
        return f"must not end with .{labels[-1]}"
    return "is a name of this installation" if domain in reserved else None


def domain_token(random_bytes: bytes) -> str:
    """Returns the token of a claim: lower-case letters and digits, valid as a label."""
    return base64.b32encode(random_bytes).decode().rstrip("=").lower()


def judge_proof(token: str, holder: DomainHolder | None, seen: DomainEvidence) -> ProofVerdict:
    """Returns whether the evidence proves the claim with this token.

    A file does not take a domain from its holder: it proves the control of the web server, which
    the holder may share, and not of the name.
    """
    by_record = token in seen.records
    if seen.is_local or not (by_record or seen.file == token):
        if not seen.is_answered:
            return MissingProof.NO_ANSWER
        is_other = bool(seen.records or seen.file)
        return MissingProof.OTHER_TOKEN if is_other else MissingProof.NOT_FOUND
    if holder is None:
        return ProofOutcome.PROVED
    if not by_record:
        return MissingProof.RECORD_NEEDED
    if not seen.is_answered:
        # The record of the holder may exist.
        return MissingProof.NO_ANSWER
    return ProofOutcome.TAKEN if holder.token in seen.records else ProofOutcome.PROVED
