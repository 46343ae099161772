"""JSON document of a response, read at one path after another.

A long document is read in a thread. A value that would take too long to read is the target failure
`response_too_large`.
"""

from dataclasses import dataclass, field
from functools import partial

from ...check.condition_evaluation import MISSING, ProbeValues
from ...check.failure import TargetFailure
from ...check.json_document import WHOLE_CHARACTERS_MOST, Path, is_json
from ...check.result import FailureClass
from ...net.egress import Egress
from ...net.http_exchange import HttpResponse


@dataclass(slots=True)
class JsonAnswer:
    """JSON document with the status of its response."""

    facts: ProbeValues = field(repr=False)
    status: int

    @classmethod
    def of(cls, response: HttpResponse) -> "JsonAnswer":
        return cls(ProbeValues(body=response.text), response.status)

    @property
    def is_empty(self) -> bool:
        return not (self.facts.body or "").strip()

    @property
    def is_json(self) -> bool:
        return is_json(self.facts.body or "")

    async def at(self, path: Path, reach: Egress) -> object:
        """Returns the value at a path, or MISSING. MISSING also if the body is not JSON.

        Raises: `TargetFailure(response_too_large)` if the value would take too long to read.
        """
        if len(self.facts.body or "") > WHOLE_CHARACTERS_MOST:
            found = await reach.in_thread_alone(partial(self.facts.in_body, path))
        else:
            found = self.facts.in_body(path)
        if self.facts.exhausted:
            raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, self.status)
        return found

    async def has(self, path: Path, reach: Egress) -> bool:
        """Returns whether a value exists at a path. Null is a value."""
        return await self.at(path, reach) is not MISSING


def is_same(found: object, wanted: str | int | bool) -> bool:
    """Returns whether two values are equal in JSON: types must match, and 1.0 equals 1."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    if isinstance(wanted, str):
        return isinstance(found, str) and found == wanted
    return isinstance(found, int | float) and found == wanted
