"""Every refusal as it leaves: one status, one field. The only place where codes become statuses."""

from collections.abc import Mapping

import msgspec

from ..storage.rules.refusal import Refused

INVALID_BODY = "invalid JSON body"

_STATUSES = {
    "unauthorized": 401,
    "totp_required": 401,
    "forbidden": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "slug_taken": 409,
    "revision_conflict": 409,
    "in_use": 409,
    "secret_exists": 409,
    "secret_quota": 409,
    "secret_renamed_in_use": 409,
    "secret_in_use": 409,
    "managed_by_file": 409,
    "channel_quota": 409,
    "webhook_quota": 409,
    "email_taken": 409,
    "member_exists": 409,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "rate_limited": 429,
    "internal_error": 500,
    "not_ready": 503,
}


class Problem(Exception):
    """An answer that is a refusal; `headers` such as Retry-After go with it."""

    def __init__(self, code: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.headers = dict(headers or {})

    @property
    def status(self) -> int:
        return _STATUSES.get(self.code, 400)


def problem_of(refused: Refused) -> Problem:
    """A refusal of the storage in the words of the wire: its code, or field and message."""
    if refused.code in _STATUSES:
        return Problem(refused.code)
    if refused.message:
        return Problem(str(refused))
    return Problem(refused.code)


def body_of(code: str) -> bytes:
    return msgspec.json.encode({"error": code})


def fault_of_body(error: Exception) -> Problem:
    """What is wrong with a body: undecodable and unknown fields alike, else the field and why."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError) or "unknown field" in text:
        return Problem(INVALID_BODY)
    return Problem(field_fault(text))


def field_fault(text: str) -> str:
    """A decoder's message with the field in front: `interval_seconds: expected int, got str`.
    What was given is not repeated: it may have been meant for another field."""
    said, _, place = text.partition(" - at `")
    said = said.replace("`", "")
    field = place.rstrip("`").removeprefix("$").lstrip(".")
    if said.startswith("Object missing required field "):
        missing = said.removeprefix("Object missing required field ")
        return f"{field}.{missing}: is required".lstrip(".")
    if said.startswith("Invalid enum value "):
        said = "is none of the values that are known"
    said = said[:1].lower() + said[1:]
    return f"{field}: {said}" if field else INVALID_BODY
