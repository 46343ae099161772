"""Correlation id: read from the submission's response, validated, put into the next URL.

The id comes from the target and may be a credential. Therefore no message and no exception contains
it.
"""

import unicodedata
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from ...check.failure import TargetFailure
from ...check.result import FailureClass
from ...check.target import Url, read_url
from ...net.egress import Egress
from ...net.http_exchange import HttpResponse
from .json_answer import JsonAnswer
from .workflow import CORRELATION, FromJson, Workflow, read_json_path

CORRELATION_BYTES_MOST: Final = 256
# As a path segment these would leave the directory. Servers decode them even if encoded.
_CLIMBING: Final = frozenset({".", ".."})


async def correlated(workflow: Workflow, response: HttpResponse, reach: Egress) -> str:
    """Returns the correlation id of a submission's response.

    Raises: `TargetFailure`, with `condition_failed` if the id is missing, or `protocol_error` if it
    is not usable.
    """
    source = workflow.correlate
    if isinstance(source, FromJson):
        answer = JsonAnswer.of(response)
        found = await answer.at(read_json_path("correlate.path", source.path), reach)
    else:
        found = response.headers.get(source.header_name.lower())
    if not isinstance(found, str | int) or isinstance(found, bool):
        raise TargetFailure(FailureClass.CONDITION_FAILED, response.status)
    said = spelt(found)
    if not is_usable(said):
        raise TargetFailure(FailureClass.PROTOCOL_ERROR, response.status)
    return said


def spelt(found: str | int) -> str:
    """Returns the id as text.

    A number longer than any valid id becomes "", because converting it could take very long.
    """
    if isinstance(found, str):
        return found
    return str(found) if found.bit_length() <= 4 * CORRELATION_BYTES_MOST else ""


def is_usable(said: str) -> bool:
    """Returns whether the id can be one whole path segment or query value."""
    try:
        size = len(said.encode())
    except UnicodeEncodeError:
        return False
    if not 1 <= size <= CORRELATION_BYTES_MOST or said in _CLIMBING:
        return False
    return not any(unicodedata.category(character) == "Cc" for character in said)


def completion_url(template: str, correlation: str) -> Url:
    """Returns the completion URL with the id inserted. The id must be `is_usable`."""
    before, _, after = template.partition(CORRELATION)
    # These URLs are the same for every id, so that `read_url` finds them in its cache.
    head, whole = read_url(before), read_url(f"{before}-{after}")
    rest = whole.path[len(head.path) + 1 :]
    return replace(head, path=head.path + quote(correlation, safe="") + rest)
