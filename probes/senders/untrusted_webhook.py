"""A POST to a URL that anybody may have named: by a way that leads into no private network, and
followed by nothing until whoever is there has said that they want it.
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
    """One attempt. Where there is an `echo` to come, it must be the answer's `challenge`, or all
    of the answer. NotDelivered."""
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
