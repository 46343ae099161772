"""POST to a URL that any internet user may have named.

The egress reaches no private network. The caller sends other events only after the receiver has
confirmed the URL.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import trio

from ..check.failure import LocalFailure, TargetFailure
from .send_result import (
    SEND_SECONDS,
    NotDelivered,
    SendContext,
    SendFailure,
    answer_of,
    post_json,
    renamed,
)

EVENT_HEADER: Final = "X-Leadline-Event"


async def post_to_stranger(
    url: str, event: str, uid: str, document: Mapping[str, Any], means: SendContext, echo: str = ""
) -> None:
    """Makes one attempt.

    A non-empty `echo` must be the response's `challenge` or its whole body.
    Raises: `NotDelivered`.
    """
    if means.stranger is None:
        raise NotDelivered(SendFailure.BLOCKED, "target_blocked")
    guarded = replace(means, reach=means.stranger)
    headers = {EVENT_HEADER: event, "webhook-id": uid}
    with trio.move_on_after(SEND_SECONDS):
        try:
            answer = await post_json(guarded, url, document, headers)
        except (TargetFailure, LocalFailure) as failure:
            raise renamed(failure) from None
        said = answer_of(answer).get("challenge", answer.content.decode(errors="replace"))
        if echo and (not isinstance(said, str) or said.strip() != echo):
            raise NotDelivered(SendFailure.REFUSED, "challenge_not_echoed")
        return
    raise NotDelivered(SendFailure.RETRY, "timeout")
