"""Heartbeat of Leadline to an external monitor of heartbeats, which alerts when it stops."""

from typing import Final

from ..net.egress import Egress
from ..net.egress_httpx import send_request
from .send_result import ANSWER_BYTES_MOST, by_status, url_of

HEARTBEAT_SECONDS: Final = 10.0


async def send_heartbeat(reach: Egress, url: str) -> None:
    """Requests the URL once.

    Raises: NotDelivered, TargetFailure, LocalFailure.
    """
    response = await send_request(
        reach,
        "GET",
        url_of(url),
        headers={},
        bytes_most=ANSWER_BYTES_MOST,
        seconds=HEARTBEAT_SECONDS,
    )
    if not response.is_success:
        raise by_status(response.status_code)
