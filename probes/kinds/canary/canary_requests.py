"""What goes out of a run: every request of every stage is made here, under the same rules.

HTTPS only, on every hop; few redirects; an answer of a bounded size; a header that says a secret
goes to the origin that the workflow names and to no other.
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
    """The secrets behind a workflow's bindings, of those alone that it declares."""

    secrets: Mapping[str, str] = field(repr=False)


def bound(workflow: Workflow, check: Check) -> BoundSecrets:
    """`LocalFailure` where a binding's secret was not given."""
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
    """A request with the workflow's headers, and of `ours` those that it does not name itself.
    `LocalFailure` where no header can carry a secret.
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
