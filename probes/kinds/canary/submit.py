"""The submission: posted once as far as the target can tell, however often it was tried.

Every try of one run carries the same Idempotency-Key and the same bytes. It is tried again only
while nothing of an answer was heard.
"""

import hashlib
import json
from secrets import token_hex
from typing import Final

import trio

from ...check.check import Check
from ...check.failure import TargetFailure
from ...check.phase_timer import Stopwatch, overdue
from ...check.result import FailureClass
from ...check.target import read_url
from ...net.egress import Egress
from ...net.http_client import fetch
from ...net.http_exchange import HttpRequest, HttpResponse
from .canary_requests import SCHEMES, BoundSecrets, outgoing
from .fixtures import FIXTURES
from .workflow import HttpJson, MultipartFixture

TRIED_AGAIN_MOST: Final = 2
PAUSE_SECONDS: Final = 0.25
# What may be the network's mood. A name that is not there, a certificate that is not believed and
# an address that is refused are the same a moment later.
_PASSING: Final = frozenset(
    {
        FailureClass.CONNECT_REFUSED,
        FailureClass.CONNECT_TIMEOUT,
        FailureClass.CONNECT_ERROR,
        FailureClass.PROTOCOL_ERROR,
    }
)


def idempotency_key(check: Check) -> str:
    """The same for the same run of the same window under the same revision. A run that nobody
    named, as of what is not saved yet, is like no other.
    """
    run = check.run_key or token_hex(16)
    return hashlib.sha256(f"canary submission {run}".encode()).hexdigest()[:40]


async def submitted(
    submit: HttpJson | MultipartFixture,
    secrets: BoundSecrets,
    key: str,
    reach: Egress,
    watch: Stopwatch,
) -> HttpResponse:
    """The answer, of a status that is accepted. Raises `Failed` and `Unobtainable`."""
    request = _request(submit, secrets, key)
    with trio.move_on_after(submit.submit_timeout):
        response = await _sent(request, reach, watch)
        if response.status not in submit.accepted_status:
            raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
        if not response.whole:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
        return response
    raise overdue(watch)


async def _sent(request: HttpRequest, reach: Egress, watch: Stopwatch) -> HttpResponse:
    left = TRIED_AGAIN_MOST
    while True:
        try:
            return await fetch(reach, request, watch)
        except TargetFailure as failed:
            # The watch is the run's, and this the first that it asks: what it heard, it heard here.
            heard = watch.read().first_byte_us is not None
            if left == 0 or heard or failed.failure not in _PASSING:
                raise
        left -= 1
        await trio.sleep(PAUSE_SECONDS)


def _request(submit: HttpJson | MultipartFixture, secrets: BoundSecrets, key: str) -> HttpRequest:
    if isinstance(submit, HttpJson):
        body, media_type = json_body(submit), "application/json"
    else:
        body, media_type = multipart_body(submit, key)
    ours = [("idempotency-key", key), ("content-type", media_type), ("accept", "application/json")]
    url = read_url(submit.url, SCHEMES)
    return outgoing("POST", url, submit.headers, secrets, ours, body)


def json_body(submit: HttpJson) -> bytes:
    return json.dumps(submit.body, ensure_ascii=False, separators=(",", ":")).encode()


def multipart_body(submit: MultipartFixture, key: str) -> tuple[bytes, str]:
    """The form (RFC 7578) and its media type. Its boundary follows from the key, so that a second
    try is the same to the byte.
    """
    fixture, form = FIXTURES[submit.fixture_ref], submit.multipart
    fields = b"".join(
        b'--%s\r\ncontent-disposition: form-data; name="%s"\r\n\r\n%s\r\n'
        % (key.encode(), name.encode(), value.encode())
        for name, value in form.fields.items()
    )
    file = (
        f'--{key}\r\ncontent-disposition: form-data; name="{form.field}";'
        f' filename="{form.filename}"\r\ncontent-type: {fixture.media_type}\r\n\r\n'
    ).encode()
    body = fields + file + fixture.content + f"\r\n--{key}--\r\n".encode()
    return body, f"multipart/form-data; boundary={key}"
