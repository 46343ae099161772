"""Monitor screen: status in the first line, its duration and reason in the second."""

from typing import Final, Literal
from uuid import UUID

import msgspec

from ....probes.check.result import UnknownReason
from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant
from ....storage.monitors.queries.certificates import MonitorCertificate
from ....storage.monitors.queries.console_monitors import select_names_of
from ....storage.monitors.rules.certificate import CertificateUnknown
from ....storage.monitors.rules.monitor import MonitorType
from ....storage.monitors.rules.monitor_state import MonitorStatus
from ....storage.monitors.transactions.edit_monitor import EDIT
from ...ui.bundle_notice import managed
from ...ui.failure_help import explain_trouble, failure_sentence, is_refusal
from ...ui.form_routes import page_route
from ...ui.formatting import Moment, ago, clock, count, dated, milliseconds, moment, utc_day
from ...ui.live_page import not_modified, tag_of, tagged
from ...ui.monitor_status import WORDS, MonitorStatusText, recovery_sentence, sentence
from ...ui.plots.expected_runs_strip import SAID
from ...ui.render import page
from ...ui.shell.mute_fact import mute_facts
from ...wire.route import Request, Response
from ..routes.monitors import push_token_of, push_url
from . import monitor_actions as acts
from .alert_status import alert_text, certificate_text, flapping_text, slow_text
from .failure_fact import failure_fact
from .last_check import check_view, class_of, where_of
from .latency_range import LatencyRange, presets, read_range
from .monitor_data import MonitorFacts, is_probed, select_facts
from .monitor_plots import course_plot, days_plot, latency_plot
from .monitor_stats import figures
from .outage_trail import trail_events
from .paging_owner import voices
from .run_rows import body_lines, run_lines
from .settings_table import monitors_named, settings


class MonitorQuery(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """`from` and `to` are instants, or local times of `zone` (default UTC), of a custom range."""

    range: Literal["", "start", "1h", "24h", "7d", "30d", "90d", "1y"] = ""
    from_: str = ""
    zone: str = ""
    to: str = ""
    said: Literal["", "asked", "waiting"] = ""


def _range(query: MonitorQuery) -> LatencyRange | None:
    return read_range(query.range, query.from_, query.to, query.zone)


async def render_monitor(ask: Request) -> Response:
    tag = await tag_of(ask, [ask.ids["monitorID"]])
    return not_modified(ask, tag) or tagged(await _render(ask), tag)


async def _render(ask: Request) -> Response:
    facts = await select_facts(ask, _range(ask.query))
    names: dict[UUID, str] = {}
    if wanted := {*facts.waits_for, *monitors_named(facts.row)}:
        async with ask.context.pool.transaction("console_names", read_only=True) as tx:
            names = await select_names_of(tx, facts.row.org, wanted)
    probed = is_probed(facts.row)
    return page(
        "monitors/console/monitor_screen.html",
        frame=facts.frame,
        row=facts.row,
        state=facts.state,
        sentence=sentence(facts.row.name, facts.state),
        since=_since(facts),
        why=why(facts),
        upcoming=_upcoming(facts),
        told=alert_text(facts.outage, facts.now),
        flapping=flapping_text(facts.flapping_since, facts.now),
        slow=slow_text(facts.warnings.slow, facts.row.slow_above_ms, facts.now),
        certificate=certificate_text(facts.warnings.certificate, facts.certificate, facts.now),
        voices=voices(facts.delegation),
        mutes=mute_facts(facts.mutes, facts.now),
        said=ask.query.said,
        probed=probed,
        figures=figures(
            facts.window_24h,
            facts.days,
            facts.day,
            facts.now,
            probed=probed,
            young=facts.is_young,
            certificate=_certificate(facts),
        ),
        fact=failure_fact(facts.last, facts.row.type, _in_a_row(facts)) if probed else None,
        trail=trail_events(facts.trail, facts.row.type, facts.now) if facts.trail else [],
        latency=latency_plot(facts) if probed else None,
        ranges=presets(facts.row.created_at, facts.now),
        range_name=facts.range_name,
        course=course_plot(facts),
        run_words=SAID,
        days=None if facts.is_young else days_plot(facts),
        first_day=utc_day(facts.days.days[0][0]),
        check=check_view(facts.last, facts.last_good, facts.row.type)
        if facts.last and probed
        else None,
        checked=ago(facts.last.ts, facts.now) if facts.last else None,
        good_at=moment(facts.last_good.ts, facts.now).text if facts.last_good else "",
        settings=settings(facts.row, {str(uid): name for uid, name in names.items()}),
        waits_for=[(uid, names[uid]) for uid in facts.waits_for if uid in names],
        failures=_failures(facts),
        heartbeat_days=facts.heartbeat_days,
        is_young=facts.is_young,
        push_url=_push_url(ask, facts),
        push_runs=run_lines(facts.push_runs, facts.now),
        push_bodies=body_lines(facts.push_bodies, ask.context.keyring, facts.now),
        replaced=_replaced(facts),
        managed=(of_bundle := managed(facts.row)),
        may_edit=facts.frame.may_write
        and not (of_bundle and of_bundle.is_read_only)
        and facts.regional.whole is None,
        regional=facts.regional,
        regions=[(one.uid, one.region, state, WORDS[state]) for one, state in facts.regions],
    )


def _certificate(facts: MonitorFacts) -> MonitorCertificate | None:
    """Returns the certificate to show. Checks without TLS need none, unless it has a setting."""
    found = facts.certificate
    if found is None or facts.row.warn_certificate_days:
        return found
    return None if found.unknown is CertificateUnknown.NO_TLS else found


def _in_a_row(facts: MonitorFacts) -> int:
    return facts.standing.failures_in_row if facts.standing is not None else 0


def _since(facts: MonitorFacts) -> Moment | None:
    standing = facts.standing
    if standing is None or standing.last_at is None:
        return None
    if facts.state in (MonitorStatusText.UP, MonitorStatusText.DOWN):
        return ago(standing.since, facts.now)
    if facts.state is MonitorStatusText.UNKNOWN:
        return ago(standing.last_at, facts.now)
    return None


def why(facts: MonitorFacts) -> str:
    """Returns the text after "since": the newest figure of an up monitor, else the reason."""
    standing = facts.standing
    if facts.trouble and facts.state not in (
        MonitorStatusText.PAUSED,
        MonitorStatusText.MAINTENANCE,
    ):
        told = explain_trouble(UnknownReason(facts.trouble))
        return f"The check cannot run: {told}. The target's status is unknown."
    last = facts.last
    failed = f" Failed condition: {last.failed.text}." if last and last.failed else ""
    match facts.state:
        case MonitorStatusText.DOWN if standing is not None and standing.last_up:
            return recovery_sentence(standing.successes, facts.row.recovery_threshold)
        case MonitorStatusText.DOWN if standing is not None:
            streak = count(standing.failures_in_row, "consecutive failure")
            # The failed condition is in the fact below.
            return f"{_failed_by(facts)}, {streak}.{'' if is_probed(facts.row) else failed}"
        case MonitorStatusText.UP if standing is not None:
            if not standing.last_up:
                need = facts.row.failure_threshold
                return (
                    f"The last check failed: {_failed_by(facts)}. Down after {need} consecutive"
                    f" failures.{failed}"
                )
            if is_probed(facts.row) and standing.latency_ms is not None:
                return f"The last check took {milliseconds(standing.latency_ms)}."
            return ""
        case MonitorStatusText.UNKNOWN if standing is not None:
            if standing.status == MonitorStatus.PENDING and not standing.last_up:
                need = facts.row.failure_threshold
                return f"{_failed_by(facts)}. Down after {need} consecutive failures.{failed}"
            return "The last result is stale; current status is unknown."
        case MonitorStatusText.PENDING:
            return "No result yet."
        case MonitorStatusText.PAUSED:
            return "Paused. This time is excluded from availability."
        case _:
            return "This time is excluded from availability."


def _failed_by(facts: MonitorFacts) -> str:
    standing = facts.standing
    return "" if standing is None else failure_sentence(standing.msg, standing.code, facts.row.type)


def _upcoming(facts: MonitorFacts) -> str:
    """Returns when the next check or push is due, or why none is."""
    if facts.next_due is None:
        return ""
    if facts.is_unserved:
        return f"Region {facts.row.region} has no live worker or agent; no check runs."
    at = Instant(facts.next_due)
    # A schedule can be due on a later day.
    when = dated(at, facts.now) if facts.row.schedule else clock(at)
    match facts.row.type:
        case MonitorType.COMPOSITE:
            # It has no reports: its status follows its members.
            return ""
        case MonitorType.PUSH if facts.last is None:
            return "The first heartbeat starts the deadline."
        case MonitorType.PUSH:
            return f"Next report expected at {when}."
        case _:
            return f"Next check at {when}."


def _failures(facts: MonitorFacts) -> list[tuple[Moment, str, str, str, str]]:
    return [
        (
            moment(beat.ts, facts.now),
            class_of(beat, facts.row.type),
            beat.failed.text if beat.failed else "",
            where_of(beat, facts.row.type),
            milliseconds(beat.latency_ms) if was_run else "",
        )
        for beat in facts.failures
        for was_run in [is_probed(facts.row) and not is_refusal(class_of(beat))]
    ]


def _replaced(facts: MonitorFacts) -> str:
    """Returns whether a service supersedes the monitor, and since when it is retired."""
    row = facts.row
    if row.retired_at is not None:
        return f"Retired since {moment(row.retired_at, facts.now).text}."
    return "" if row.superseded_by is None else "Replaced by a service."


def _push_url(ask: Request, facts: MonitorFacts) -> str:
    """Returns the push URL if the user may write the monitor, else an empty string.

    The URL contains the push token, which authorizes reports for the target.
    """
    token = push_token_of(ask, facts.row) if facts.frame.may_write else None
    return push_url(ask, token) if token else ""


_MONITOR: Final = ("monitor", "monitorID")

ROUTES: Final = (
    page_route(
        method="GET",
        path="/monitors/{monitorID}",
        action=Permission(Need.VIEWER),
        scope=_MONITOR,
        handler=render_monitor,
        summary="Monitor screen.",
        query=MonitorQuery,
    ),
    page_route(
        method="POST",
        path="/monitors/{monitorID}",
        action=EDIT,
        scope=_MONITOR,
        handler=acts.submit_monitor,
        summary="Pause, resume or check a monitor.",
    ),
    page_route(
        method="GET",
        path="/monitors/{monitorID}/delete",
        action=EDIT,
        scope=_MONITOR,
        handler=acts.ask_to_delete,
        summary="Confirmation of the deletion of a monitor.",
    ),
    page_route(
        method="POST",
        path="/monitors/{monitorID}/delete",
        action=EDIT,
        scope=_MONITOR,
        handler=acts.delete,
        summary="Delete a monitor.",
    ),
)
