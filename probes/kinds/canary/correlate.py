"""By what the submission is known again: taken from its answer, held against its bounds, and put
into the address where its end is awaited.

It came from the target and may be worth as much as a credential: it stands in no message, and in
no exception.
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
# As a whole segment these would climb; encoded or not, servers read them so.
_CLIMBING: Final = frozenset({".", ".."})


async def correlated(workflow: Workflow, response: HttpResponse, reach: Egress) -> str:
    """The id in a submission's answer. `TargetFailure`: `condition_failed` where there is none,
    `protocol_error` where what is there is none that could be used.
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
    """Empty where a number is longer than any id may be: to spell one out may take for ever."""
    if isinstance(found, str):
        return found
    return str(found) if found.bit_length() <= 4 * CORRELATION_BYTES_MOST else ""


def is_usable(said: str) -> bool:
    """Whether it is a whole segment of a path, or value of a query, and nothing else besides."""
    try:
        size = len(said.encode())
    except UnicodeEncodeError:
        return False
    if not 1 <= size <= CORRELATION_BYTES_MOST or said in _CLIMBING:
        return False
    return not any(unicodedata.category(character) == "Cc" for character in said)


def completion_url(template: str, correlation: str) -> Url:
    """The address with the id in its place, for an id that `is_usable`."""
    before, _, after = template.partition(CORRELATION)
    # What is read is the same for every id: the reader remembers what it has read.
    head, whole = read_url(before), read_url(f"{before}-{after}")
    rest = whole.path[len(head.path) + 1 :]
    return replace(head, path=head.path + quote(correlation, safe="") + rest)
