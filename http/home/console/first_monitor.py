"""Conversion of an entered address to a monitor. Tolerant of incomplete addresses."""

from dataclasses import replace

import msgspec

from ....probes.check.monitor_spec import MonitorType as ProbeType
from ....probes.check.registry import spec_of
from ....probes.check.target import BadTarget, read_host_port, read_url
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.monitors.queries.monitor_defaults import monitor_defaults_in_force
from ....storage.monitors.rules.monitor import MonitorType
from ...monitors.routes import monitors as api
from ...monitors.schemas.monitors import CreateMonitor
from ...ui.form_values import stripped
from ...ui.formatting import count, setting
from ...ui.render import page, redirect
from ...ui.shell.page_layout import PageLayout, frame_of
from ...wire.errors import Problem
from ...wire.route import Request, Response


class Address(msgspec.Struct, frozen=True):
    type: MonitorType
    target: str
    host: str


async def render_first_monitor(
    tx: Tx, frame: PageLayout, *, typed: str = "", error: str = "", status: int = 200
) -> Response:
    """Renders the form, with the defaults that the monitor will have."""
    defaults = await monitor_defaults_in_force(tx)
    many = defaults.failure_threshold
    return page(
        "home/console/first_monitor.html",
        status=status,
        frame=frame,
        typed=typed,
        error=error,
        every=setting(defaults.interval_seconds),
        timeout=setting(defaults.timeout_seconds),
        failures="1 failure" if many == 1 else count(many, "consecutive failure"),
    )


async def create_first(ask: Request) -> Response:
    typed = stripped(ask, "target")
    try:
        address = read_address(typed)
        draft = CreateMonitor(name=address.host, type=address.type, target=address.target)
        made = await api.create(replace(ask, body=draft))
    except BadTarget as bad:
        return await _again(ask, typed, f"Address: {bad}.")
    except Refused as refused:
        if refused.code != "invalid":
            raise
        return await _again(ask, typed, f"Address: {refused.message}.")
    except Problem as problem:
        if problem.status != 400:
            raise
        return await _again(ask, typed, problem.code)
    return redirect(f"/monitors/{made.body.id}")


async def _again(ask: Request, typed: str, error: str) -> Response:
    async with ask.context.pool.transaction("console_first_monitor", read_only=True) as tx:
        frame = await frame_of(ask, tx)
        return await render_first_monitor(tx, frame, typed=typed, error=error, status=400)


def read_address(text: str) -> Address:
    """Returns HTTP for http:// and https://, TCP for host:port, and https:// for other texts."""
    if "://" in text:
        spec = spec_of(ProbeType.HTTP)
        assert spec is not None
        return Address(MonitorType.HTTP, text, read_url(text, spec.schemes).host)
    head = text.partition("/")[0]
    if text == head and ":" in text:
        host, _ = read_host_port(text)
        return Address(MonitorType.TCP, text, host)
    target = f"https://{text}"
    return Address(MonitorType.HTTP, target, read_url(target).host)
