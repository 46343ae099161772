"""Requests of a canary run. Every stage creates its requests here.

HTTPS is required on every hop. Redirects are few, and responses are bounded. A header with a secret
is sent only to the origin that the workflow names.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ...check.check import Check
from ...check.failure import LocalFailure
from ...check.monitor_spec import header_fault
from ...check.result import UnknownReason
from ...check.target import Url
from ...net.http_exchange import Header as Pair
from ...net.http_exchange import HttpRequest
from .workflow import Header, Workflow

BINDINGS: Final = "canary_secret"
SCHEMES: Final = ("https",)
REDIRECTS_MOST: Final = 3
RESPONSE_BYTES_MOST: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class BoundSecrets:
    """Secrets of the bindings that a workflow declares."""

    secrets: Mapping[str, str] = field(repr=False)


def bound(workflow: Workflow, check: Check) -> BoundSecrets:
    """Returns the secrets of the bindings.

    Raises: `LocalFailure` if a secret is missing.
    """
    found = {name: check.secrets.get(f"{BINDINGS}_{name}", "") for name in workflow.bindings}
    if not all(found.values()):
        raise LocalFailure(UnknownReason.MISSING_REFERENCE)
    return BoundSecrets(found)


def outgoing(
    method: str,
    url: Url,
    headers: Iterable[Header],
    secrets: BoundSecrets,
    ours: Iterable[Pair],
    body: bytes = b"",
) -> HttpRequest:
    """Returns a request with the workflow's headers, and the headers of `ours` not among them.

    Raises: `LocalFailure` if a header cannot carry its secret.
    """
    said: list[Pair] = []
    backed: set[str] = set()
    for header in headers:
        if isinstance(header.secret_ref, str):
            value = secrets.secrets[header.secret_ref]
            if header_fault(header.name, value):
                raise LocalFailure(UnknownReason.BAD_SECRET)
            backed.add(header.name.lower())
        else:
            value = header.value if isinstance(header.value, str) else ""
        said.append((header.name, value))
    named = {name.lower() for name, _ in said}
    return HttpRequest(
        method=method,
        url=url,
        headers=[*said, *(pair for pair in ours if pair[0] not in named)],
        body=body,
        secrets=frozenset(backed),
        body_is_secret=any(secret.encode() in body for secret in secrets.secrets.values()),
        redirects=REDIRECTS_MOST,
        schemes=SCHEMES,
        body_bytes_most=RESPONSE_BYTES_MOST,
    )
