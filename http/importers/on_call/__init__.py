"""Import of on-call from other tools: people, schedules, overrides, policies and routes."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from ..import_result import CannotImport
from ..json_file import BadJson, read_json
from ..source import Source
from .document import OnCallImport
from .goalert import read_goalert
from .grafana_oncall import read_grafana_oncall
from .opsgenie import read_opsgenie
from .pagerduty import read_pagerduty

_READERS: Final[dict[str, Callable[[Source], OnCallImport]]] = {
    "pagerduty": read_pagerduty,
    "opsgenie": read_opsgenie,
    "grafana-oncall": read_grafana_oncall,
    "goalert": read_goalert,
}
TOOLS: Final = tuple(_READERS)


def read_on_call(tool: str, path: Path) -> OnCallImport:
    """Returns the import of a file. Raises: CannotImport, OSError."""
    try:
        document: Any = read_json(path.read_bytes())
        if not isinstance(document, Mapping):
            raise CannotImport("is no object with lists of users and schedules")
        if not isinstance(document.get("users", []), list):
            raise CannotImport("has no list of users")
        if not isinstance(document.get("schedules", []), list):
            raise CannotImport("has no list of schedules")
        return _READERS[tool](Source(document))
    except BadJson as error:
        raise CannotImport(str(error)) from error
    except CannotImport:
        raise
    # A file whose parts have other types than those of the tool.
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise CannotImport("has a structure that the importer does not know") from error
