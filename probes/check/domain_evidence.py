"""What proves the control of a domain, and what the domain shows of it at one instant. Pure.

The evidence contains every token that was found, also those of others, so it is collected without
knowledge of the expected one.
"""

from dataclasses import dataclass

RECORD_PREFIX = "_leadline."
FILE_PATH = "/.well-known/leadline-domain"
# Precedes the token in a TXT record and in the file.
TEXT_PREFIX = "leadline-domain="
TOKEN_LONGEST = 63


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainEvidence:
    """Evidence of a domain.

    `records` are the tokens of the TXT and CNAME records at RECORD_PREFIX and the domain. `file` is
    the token at FILE_PATH, or empty. `is_answered` states that name servers answered, so that a
    missing record does not exist. `is_local` states that the name resolves to a loopback address.
    """

    records: frozenset[str] = frozenset()
    file: str = ""
    is_answered: bool = False
    is_local: bool = False


def token_of_text(text: str) -> str:
    """Returns the token of a TXT record or a file, or "" if the text is another one."""
    prefix, token = text.strip().partition("=")[::2]
    is_ours = f"{prefix}=" == TEXT_PREFIX and len(token) <= TOKEN_LONGEST
    return token if is_ours and token.isascii() and token.isalnum() else ""


def token_of_alias(target: str) -> str:
    """Returns the token of a CNAME record, the first label of its target."""
    return target.partition(".")[0].lower()
