"""Submission: one POST from the target's point of view, even if it is retried.

Every attempt of a run has the same Idempotency-Key and the same bytes. It is retried only if no
byte of a response was received.
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
# Failures that may be transient. A missing name, an untrusted certificate and a blocked address do
# not change within seconds.
_PASSING: Final = frozenset(
    {
        FailureClass.CONNECT_REFUSED,
        FailureClass.CONNECT_TIMEOUT,
        FailureClass.CONNECT_ERROR,
        FailureClass.PROTOCOL_ERROR,
    }
)


def idempotency_key(check: Check) -> str:
    """Returns the key, which is the same for one run of one window under one revision.

    A run without `run_key`, for example of an unsaved monitor, gets a random key.
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
    """Returns the response if its status is accepted.

    Raises: `TargetFailure` and `LocalFailure`.
    """
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
            # This is the first request of the run's watch, so a first byte on it is of this
            # request.
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
    """Returns the form (RFC 7578) and its media type.

    The boundary is the key, so that a retry has identical bytes.
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
