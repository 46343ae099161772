"""Example documents of monitor types. They can be saved unchanged.

The examples are not shown next to the fields. A button inserts them into empty fields.
"""

import json
from collections.abc import Mapping
from typing import Final

from ....probes.check.monitor_spec import MonitorType
from ....storage.monitors.rules.fields import DEFAULTS

_WORKFLOW: Final = {
    "kind": "async_transaction_v1",
    "secrets": {},
    "submit": {
        "kind": "http_json",
        "url": "https://jobs.example.com/v1/jobs",
        "submit_timeout": 10,
        "accepted_status": [201, 202],
        "headers": [{"name": "X-Purpose", "value": "canary"}],
        "body": {"kind": "canary"},
    },
    "correlate": {"source": "response_json", "path": "id"},
    "completion": {
        "kind": "poll_json",
        "url": "https://jobs.example.com/v1/jobs/{{ correlation_id }}",
        "timeout": 45,
        "poll": {
            "interval": 2,
            "max_attempts": 20,
            "success": {"path": "state", "value": "done"},
            "failure": {"path": "state", "values": ["failed"]},
        },
    },
    "result": {
        "max_latency": 30,
        "required_json_fields": ["result"],
        "lifecycle_path": "result.name",
    },
    "cleanup": {"kind": "lifecycle_prefix", "prefix": "canary-"},
}
# Longest duration of the example.
_TIMEOUT_SECONDS: Final = 60
# By monitor type and by the setting that contains the document.
EXAMPLES: Final[Mapping[tuple[str, str], str]] = {
    (MonitorType.ASYNC_CANARY, "workflow"): json.dumps(_WORKFLOW, indent=2),
}


def with_examples(kind: str, typed: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Returns the form values with examples in empty documents.

    A timeout that has the default value becomes long enough for the example, if the interval
    permits.
    """
    filled = dict(typed)
    for (of, name), text in EXAMPLES.items():
        key = f"config.{name}"
        if of == kind and not "".join(filled.get(key, [])).strip():
            filled[key] = [text]
            interval = "".join(filled.get("interval_seconds", []))
            untouched = filled.get("timeout_seconds") == [str(DEFAULTS["timeout_seconds"])]
            if untouched and interval.isdecimal() and int(interval) >= _TIMEOUT_SECONDS:
                filled["timeout_seconds"] = [str(_TIMEOUT_SECONDS)]
    return filled
