"""The options that describe a monitor, and the body of a request from them."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from ....probes.check.monitor_spec import MonitorType
from ..api_client import DurationParam
from ..service_lookup import ResourceParam


class SettingParam(click.ParamType[tuple[str, Any]]):
    """`NAME=VALUE`. The value is JSON, and text if it is no JSON."""

    name = "name=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, sign, text = str(value).partition("=")
        if not name or not sign:
            self.fail("must be NAME=VALUE", param, ctx)
        try:
            return name, msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return name, text


_OPTIONS = (
    click.option(
        "--type",
        "kind",
        type=click.Choice(sorted(one.value for one in MonitorType)),
        default="http",
        show_default=True,
        help="Type of the monitor.",
    ),
    click.option("--target", help="Address that is checked, such as https://example.org/."),
    click.option("--slug", type=ResourceParam(), help="Slug.  [default: made from the name]"),
    click.option("--description", help="Description for people."),
    click.option(
        "--interval", type=DurationParam("5s", "1d", "60s"), help="Time between two runs."
    ),
    click.option("--region", help="Region that runs the checks."),
    click.option("--condition", multiple=True, help="Condition; all of several must be true."),
    click.option("--tag", multiple=True, help="Tag; can be repeated."),
    click.option("--paused", is_flag=True, help="Add the monitor without running checks."),
    click.option(
        "--config",
        multiple=True,
        type=SettingParam(),
        help="Setting of the type, such as query='up'; the value is JSON or text.",
    ),
    click.option(
        "--set",
        "fields",
        multiple=True,
        type=SettingParam(),
        help="Another field of the API, such as failure_threshold=2.",
    ),
)


def draft_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options that describe a monitor."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def drafted(given: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of the API for the options that are given."""
    interval = given["interval"]
    fields = {
        "type": given["kind"],
        "target": given["target"],
        "slug": given["slug"],
        "description": given["description"],
        "interval_seconds": None if interval is None else int(interval),
        "region": given["region"],
        "conditions": list(given["condition"]) or None,
        "tags": list(given["tag"]) or None,
        "enabled": False if given["paused"] else None,
        "config": dict(given["config"]) or None,
    }
    return {k: v for k, v in fields.items() if v is not None} | dict(given["fields"])
