"""Contact methods of the user, with the personal rules. Each button calls its API handler."""

import re
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import msgspec

from ....probes.senders.personal import PERSONAL_SPECS
from ....storage.core.refusal import Refused
from ....storage.notifications.rules.contact_method import LABEL_LONGEST
from ....storage.notifications.rules.personal_rules import DELAY_SECONDS, Urgency
from ....storage.notifications.transactions.edit_contact_methods import OWN
from ...ui.form_routes import page_route
from ...ui.form_values import stripped, uuid_given, uuid_or_none, value_of, whole_number
from ...ui.formatting import label
from ...ui.render import page, redirect
from ...ui.shell.page_layout import outer_frame_of
from ...ui.time_inputs import zone_choices
from ...wire.errors import Problem, problem_of
from ...wire.route import Request, Response, Route
from ..routes import contacts as api
from ..schemas.contacts import (
    CLOCK,
    ContactCode,
    ContactRule,
    CreateContactMethod,
    PatchContactMethod,
    PersonalRulesBody,
    QuietHoursBody,
)
from ..schemas.notifications import Tested

PATH: Final = "/profile/contacts"
_LABELS: Final = {
    "method": "Contact method:",
    "code": "Code:",
    "label": "Name:",
    "delay": "Delay:",
    "quiet_hours.from": "Quiet from:",
    "quiet_hours.until": "Quiet until:",
    "quiet_hours.time_zone": "Time zone:",
}
_SAID: Final = {
    "encryption_key_missing": "Secrets need security.encryption_key.",
    "contact_method_quota": "The limit of contact methods is reached.",
}
_MINUTES_MOST: Final = DELAY_SECONDS[1] // 60
_CLOCK: Final = re.compile(CLOCK)
_NAMES: Final = {
    "email": "E-mail",
    "ntfy": "ntfy",
    "telegram": "Telegram",
    "slack": "Slack",
    "mattermost": "Mattermost",
    "webhook": "Webhook",
    "sms": "SMS",
    "voice": "Voice call",
}
_DONE: Final = {
    "add": "Added. Send a code to verify the method.",
    "verify": "Verified. Pages reach you by this method now.",
    "enable": "Enabled.",
    "disable": "Disabled.",
    "delete": "Deleted.",
    "rules": "Rules saved.",
}


class ContactsQuery(msgspec.Struct, frozen=True):
    """`kind` opens the form of a new method of this kind, `delete` asks before this method is
    deleted, and `done` names the completed action.
    """

    kind: str = ""
    delete: str = ""
    done: str = ""


@dataclass(frozen=True, slots=True)
class ContactsResult:
    text: str = ""
    is_wrong: bool = False


async def render_contacts(ask: Request) -> Response:
    said = ContactsResult(_DONE.get(ask.query.done, ""))
    return await _render(ask, said, ask.query.kind)


async def submit_contacts(ask: Request) -> Response:
    what = value_of(ask, "act")
    try:
        return await _apply(ask, what)
    except Refused as refused:
        problem = problem_of(refused)
    except Problem as caught:
        problem = caught
    if problem.status in (401, 403, 404):
        raise problem
    kind = stripped(ask, "kind")
    if problem.status == 429:
        wait = problem.headers.get("Retry-After", "60")
        said = ContactsResult(f"Too many messages in an hour. Try again in {wait} s.", True)
        return await _render(ask, said, kind, status=429)
    field, colon, rule = problem.code.partition(": ")
    shown = _LABELS.get(field) or f"{label(field.removeprefix('config.'))}:"
    text = _SAID.get(problem.code) or (f"{shown} {rule}." if colon else problem.code)
    return await _render(ask, ContactsResult(text, True), kind, status=400)


async def _apply(ask: Request, what: str) -> Response:
    if what == "add":
        kind = stripped(ask, "kind")
        if kind not in PERSONAL_SPECS:
            raise Problem("Unknown action")
        config = {
            one.name: text
            for one in PERSONAL_SPECS[kind].settings
            if (text := stripped(ask, f"config.{one.name}"))
        }
        body = CreateContactMethod(
            kind=kind,  # type: ignore[arg-type]
            label=stripped(ask, "label"),
            config=config,
        )
        await api.create(replace(ask, body=body))
        return _done(what)
    if what == "rules":
        await api.write_rules(replace(ask, body=await _rules(ask)))
        return _done(what)
    named = replace(ask, ids={**ask.ids, "methodID": uuid_given(value_of(ask, "method"))})
    match what:
        case "code":
            return await _render(ask, _sent(await api.send_code(named), "The code was sent."))
        case "test":
            return await _render(ask, _sent(await api.test(named), "The test was sent."))
        case "verify":
            await api.verify(replace(named, body=ContactCode(code=stripped(ask, "code")[:64])))
        case "enable" | "disable":
            await api.update(replace(named, body=PatchContactMethod(enabled=what == "enable")))
        case "delete":
            await api.delete(named)
        case _:
            raise Problem("Unknown action")
    return _done(what)


def _done(what: str) -> Response:
    return redirect(f"{PATH}?done={what}")


def _sent(tested: Tested, text: str) -> ContactsResult:
    if tested.ok:
        return ContactsResult(text)
    return ContactsResult(f"Not sent: {tested.reason}.", is_wrong=True)


async def _rules(ask: Request) -> PersonalRulesBody:
    """Reads the table of delays. An empty delay means that the method is not notified."""
    rules: dict[Urgency, list[ContactRule]] = {urgency: [] for urgency in Urgency}
    for row in (await api.own_contacts(ask)).methods:
        for urgency, found in rules.items():
            typed = stripped(ask, f"{urgency.value}-{row.uid}")
            if typed:
                minutes = whole_number("delay", typed)
                if not 0 <= minutes <= _MINUTES_MOST:
                    raise Refused("invalid", "delay", f"must be 0 to {_MINUTES_MOST} minutes")
                found.append(ContactRule(method_id=row.uid, delay_seconds=minutes * 60))
    quiet = None
    since, until = stripped(ask, "quiet-from"), stripped(ask, "quiet-until")
    if since or until:
        for name, text in (("from", since), ("until", until)):
            if not _CLOCK.fullmatch(text):
                raise Refused("invalid", f"quiet_hours.{name}", "must be a time such as 22:00")
        zone = stripped(ask, "quiet-zone")
        quiet = QuietHoursBody(from_=since, until=until, time_zone=zone)
    return PersonalRulesBody(
        page=rules[Urgency.PAGE], ticket=rules[Urgency.TICKET], quiet_hours=quiet
    )


async def _render(
    ask: Request, said: ContactsResult, kind: str = "", *, status: int = 200
) -> Response:
    own = await api.own_contacts(ask)
    rules = await api.read_rules(ask)
    delays: dict[tuple[str, UUID], int | str] = {
        (urgency.value, one.method_id): one.delay_seconds // 60
        for urgency, of_urgency in ((Urgency.PAGE, rules.page), (Urgency.TICKET, rules.ticket))
        for one in of_urgency
    }
    frame = await outer_frame_of(ask)
    quiet = rules.quiet_hours
    zone = quiet.time_zone if quiet is not None else ask.who.time_zone
    shown = {
        "from": quiet.from_ if quiet else "",
        "until": quiet.until if quiet else "",
        "zone": zone or "UTC",
    }
    if said.is_wrong and value_of(ask, "act") == "rules":
        # What was typed stays after an error.
        delays = {
            (urgency.value, row.uid): stripped(ask, f"{urgency.value}-{row.uid}")
            for urgency in Urgency
            for row in own.methods
        }
        shown = {name: stripped(ask, f"quiet-{name}") for name in shown}
    return page(
        "notifications/console/contacts.html",
        status=status,
        frame=frame,
        path=PATH,
        said=said,
        methods=[api.method_json(row) for row in own.methods],
        kinds=[(name, spec.help) for name, spec in PERSONAL_SPECS.items()],
        names=_NAMES,
        deleting=uuid_or_none(ask.query.delete) if ask.method == "GET" else None,
        adding=kind if kind in PERSONAL_SPECS else "",
        inputs=[
            (one, label(one.name), stripped(ask, f"config.{one.name}") if not one.secret else "")
            for one in (PERSONAL_SPECS[kind].settings if kind in PERSONAL_SPECS else ())
        ],
        typed_label=stripped(ask, "label"),
        label_longest=LABEL_LONGEST,
        severities=[one.value for one in Urgency],
        delays=delays,
        minutes_most=_MINUTES_MOST,
        quiet=shown,
        zones=zone_choices(shown["zone"]),
    )


ROUTES: Final[tuple[Route, ...]] = (
    page_route(
        method="GET",
        path=PATH,
        action=OWN,
        handler=render_contacts,
        summary="Your contact methods.",
        query=ContactsQuery,
    ),
    page_route(
        method="POST",
        path=PATH,
        action=OWN,
        handler=submit_contacts,
        summary="Change your contact methods and personal rules.",
        query=ContactsQuery,
    ),
)
