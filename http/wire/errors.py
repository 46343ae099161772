"""Conversion of refusals to one status and one field. The only map of codes to statuses."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ...storage.changes.rules.change import Code
from ...storage.core.decode_error import field_fault
from ...storage.core.refusal import Refused

INVALID_BODY = "invalid JSON body"

_STATUSES = {
    "unauthorized": 401,
    "totp_required": 401,
    "forbidden": 403,
    "not_found": 404,
    "not_configured": 404,
    "none_active": 404,
    "no_terminal_phase": 404,
    "method_not_allowed": 405,
    "slug_taken": 409,
    "domain_taken": 409,
    "subscriber_quota": 409,
    "revision_conflict": 409,
    "in_use": 409,
    "secret_exists": 409,
    "secret_quota": 409,
    "secret_in_use": 409,
    "managed_by_file": 409,
    "regional_monitor": 409,
    "not_superseded": 409,
    "retired": 409,
    "not_retired": 409,
    "incident_resolved": 409,
    "not_resolved": 409,
    "update_quota": 409,
    "update_not_public": 409,
    "update_final": 409,
    "update_sent": 409,
    "undo_expired": 409,
    "link_expired": 409,
    "link_used": 409,
    "mute_ended": 409,
    "mute_quota": 409,
    "template_exists": 409,
    "template_quota": 409,
    "channel_quota": 409,
    "contact_method_quota": 409,
    "webhook_quota": 409,
    "agent_token_quota": 409,
    "policy_quota": 409,
    "schedule_quota": 409,
    "service_quota": 409,
    "graph_generation_stale": 409,
    "override_quota": 409,
    "cover_quota": 409,
    "cover_accepted": 409,
    "cover_outdated": 409,
    "maintenance_quota": 409,
    "preview_required": 409,
    "preview_stale": 409,
    "preview_approximate": 409,
    "page_quota": 409,
    "component_quota": 409,
    "page_configuration_stale": 409,
    "email_taken": 409,
    "totp_enabled": 409,
    "identity_taken": 409,
    "token_rotated": 409,
    "domain_not_allowed": 403,
    "member_exists": 409,
    "body_too_large": 413,
    "unsupported_media_type": 415,
    "phase_order": 409,
    "phase_exists": 409,
    "kind_mismatch": 409,
    "override_active": 409,
    "override_not_active": 409,
    "rate_limited": 429,
    "history_busy": 429,
    "mail_unavailable": 503,
    "process_inflight": 429,
    "principal_inflight": 429,
    "principal_rate": 429,
    "process_rate": 429,
    "internal_error": 500,
    "not_ready": 503,
    "snapshot_conflict": 503,
    "ledger_unwritable": 503,
    "timeout": 503,
}
# A write waited for a lock for longer than a request may.
LOCKED = "locked: another change, such as the application of a bundle, is running: try again later"

# Refusals whose message names the field and the rule, each with its own status.
_EXPLAINED = {
    "older_than_raw_retention": 422,
    "bulk_busy": 409,
    "bundle_busy": 409,
    "bundle_conflict": 409,
    "no_undo": 409,
    "conversion_conflict": 409,
    "plan_stale": 409,
    "project_locked": 409,
}
# Refusals that show their code, then the field, then the rule.
_SPELT_OUT = frozenset(code.value for code in Code)


class Problem(Exception):
    """Exception that becomes an error response, with `headers` such as Retry-After.

    Without a status, the status of the code applies, or 400 if the code is a sentence.
    """

    def __init__(
        self, code: str, *, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(code)
        self.code = code
        self.status = _STATUSES.get(code, 400) if status is None else status
        self.headers = dict(headers or {})


def problem_of(refused: Refused) -> Problem:
    """Converts a refusal of the storage to an error response: its code, or field and message."""
    if refused.code in _SPELT_OUT:
        words = [word for word in (refused.code, refused.field, refused.message) if word]
        return Problem(": ".join(words), status=_STATUSES.get(refused.code, 400))
    if refused.code == "managed_by_file" and refused.message:
        # The code, then the object that is managed.
        return Problem(f"{refused.code}: {refused}", status=_STATUSES[refused.code])
    if refused.code in _STATUSES:
        return Problem(refused.code)
    if refused.message:
        return Problem(str(refused), status=_EXPLAINED.get(refused.code))
    return Problem(refused.code)


def body_of(code: str) -> bytes:
    return msgspec.json.encode({"error": code})


def fault_of_body(error: Exception, kind: Any = None) -> Problem:
    """Returns INVALID_BODY for undecodable bodies and unknown fields, else the field fault.

    `kind` is the type of the body, whose enumerations the message lists.
    """
    text = str(error)
    if not isinstance(error, msgspec.ValidationError) or "unknown field" in text:
        return Problem(INVALID_BODY)
    return Problem(fault_in_words(text, kind))


def fault_in_words(text: str, kind: Any = None) -> str:
    """Converts the message of a decoder, e.g. to `interval_seconds: expected int, got str`."""
    field, said = field_fault(text, kind)
    return f"{field}: {said}" if field else INVALID_BODY
