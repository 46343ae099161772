"""Routes of the own contact methods: verification, test messages, personal rules.

A code is sent by the request itself and never stored, so that the answer tells whether it left.
"""

import secrets
from functools import partial
from typing import Final
from uuid import UUID

from uuid_utils.compat import uuid7

from ....probes.senders.channel_spec import MASK
from ....probes.senders.deliver import deliver_to_person
from ....probes.senders.message import Message, NotificationStatus
from ....probes.senders.personal import PERSONAL_SPECS
from ....probes.senders.phone import VOICE
from ....probes.senders.send_result import NotDelivered
from ....storage.core.instant import to_text
from ....storage.engine.keyring import CannotOpen
from ....storage.notifications.queries.contact_methods import OwnContacts, select_own_contacts
from ....storage.notifications.queries.gateway import gateway_in_force
from ....storage.notifications.rows import ContactMethodRow
from ....storage.notifications.rules.contact_method import CODE_LASTS_US, code_from
from ....storage.notifications.rules.personal_rules import QuietHours, Urgency
from ....storage.notifications.transactions.channel_secrets import opened_method, plain_settings
from ....storage.notifications.transactions.edit_contact_methods import (
    OWN,
    RuleDraft,
    begin_code,
    begin_test,
    confirm_code,
    create_method,
    delete_method,
    edit_method,
    put_rules,
)
from ...wire.errors import Problem
from ...wire.mail_config import mailing_in
from ...wire.route import Request, Route, setting_routes
from ...wire.schema import given, instant_text, known
from ..schemas.contacts import (
    ContactCode,
    ContactMethod,
    ContactRule,
    CreateContactMethod,
    PatchContactMethod,
    PersonalRulesBody,
    QuietHoursBody,
)
from ..schemas.notifications import Tested

_ALL: Final = "/api/v1/me/contact-methods"
_ONE: Final = f"{_ALL}/{{methodID}}"
_RULES: Final = "/api/v1/me/notification-rules"


def method_json(row: ContactMethodRow) -> ContactMethod:
    hidden = PERSONAL_SPECS[row.kind].secrets
    shown = plain_settings(row.config)
    return ContactMethod(
        id=row.uid,
        kind=row.kind,
        label=row.label,
        config={name: MASK if name in hidden else value for name, value in shown.items()},
        enabled=row.enabled,
        verified_at=instant_text(row.verified_at),
        created_at=to_text(row.created_at),
        proposed_by=known(row.proposed_by or None),
    )


async def own_contacts(ask: Request) -> OwnContacts:
    assert isinstance(ask.who.user, UUID), "a session has a person"
    async with ask.context.pool.transaction("own_contacts", read_only=True) as tx:
        return await select_own_contacts(tx, ask.who.user)


async def list_methods(ask: Request) -> list[ContactMethod]:
    return [method_json(row) for row in (await own_contacts(ask)).methods]


async def create(ask: Request) -> ContactMethod:
    body: CreateContactMethod = ask.body
    async with ask.context.pool.transaction("create_contact_method") as tx:
        row = await create_method(
            tx, ask.who, body.kind, body.label, body.config, ask.context.keyring
        )
    return method_json(row)


async def update(ask: Request) -> ContactMethod:
    body: PatchContactMethod = ask.body
    async with ask.context.pool.transaction("edit_contact_method") as tx:
        row = await edit_method(
            tx, ask.who, ask.ids["methodID"], given(body.label), given(body.enabled)
        )
    return method_json(row)


async def delete(ask: Request) -> None:
    async with ask.context.pool.transaction("delete_contact_method") as tx:
        await delete_method(tx, ask.who, ask.ids["methodID"])


async def send_code(ask: Request) -> Tested:
    """Sends a new code once. The former code becomes invalid."""
    code = code_from(secrets.randbits(64))
    async with ask.context.pool.transaction("begin_contact_code") as tx:
        row, wait = await begin_code(tx, ask.who, ask.ids["methodID"], code)
    _refuse_too_many(wait)
    minutes = CODE_LASTS_US // 60_000_000
    lines = (
        f"It is valid for {minutes} minutes.",
        "Enter it on the page of your contact methods only.",
    )
    # A voice says the digits one by one, and not one large number.
    said = ", ".join(code) if row.kind == VOICE.type else code
    return await _send(ask, row, f"Your code is {said}", lines)


async def verify(ask: Request) -> ContactMethod:
    async with ask.context.pool.transaction("confirm_contact_code") as tx:
        is_verified = await confirm_code(tx, ask.who, ask.ids["methodID"], ask.body.code)
    if not is_verified:
        raise Problem("code: wrong code")
    methods = (await own_contacts(ask)).methods
    return next(method_json(row) for row in methods if row.uid == ask.ids["methodID"])


async def test(ask: Request) -> Tested:
    async with ask.context.pool.transaction("begin_contact_test") as tx:
        row, wait = await begin_test(tx, ask.who, ask.ids["methodID"])
    _refuse_too_many(wait)
    return await _send(ask, row, "Leadline test message", ("No action is required.",))


def _refuse_too_many(wait: int) -> None:
    if wait:
        raise Problem("rate_limited", headers={"Retry-After": str(wait)})


async def _send(ask: Request, row: ContactMethodRow, title: str, lines: tuple[str, ...]) -> Tested:
    """Makes one attempt."""
    context = ask.context
    async with context.pool.transaction("read_senders", read_only=True) as tx:
        mailing = await mailing_in(tx, context)
        gateway = await gateway_in_force(tx, context.keyring)
    try:
        config = opened_method(row, context.keyring)
    except CannotOpen:
        return Tested(ok=False, reason="decrypt_failed")
    uid = str(uuid7())
    message = Message(
        id=uid,
        key=uid,
        event="contact_method.test",
        status=NotificationStatus.TEST,
        title=title,
        lines=lines,
    )
    means = mailing.with_gateway(gateway).means
    async with context.test_permits:
        try:
            await deliver_to_person(row.kind, message, config, means)
        except NotDelivered as why:
            return Tested(ok=False, reason=why.reason)
    return Tested(ok=True)


async def read_rules(ask: Request) -> PersonalRulesBody:
    own = await own_contacts(ask)
    uids = {row.id: row.uid for row in own.methods}
    page, ticket = (
        [
            ContactRule(method_id=uids[rule.method], delay_seconds=rule.delay_seconds)
            for rule in own.rules.get(urgency, ())
        ]
        for urgency in Urgency
    )
    quiet, settings = None, own.settings
    if settings.quiet_from is not None and settings.quiet_until is not None:
        quiet = QuietHoursBody(
            from_=spelt_clock(settings.quiet_from),
            until=spelt_clock(settings.quiet_until),
            time_zone=settings.quiet_zone,
        )
    return PersonalRulesBody(page=page, ticket=ticket, quiet_hours=quiet)


async def write_rules(ask: Request) -> PersonalRulesBody:
    body: PersonalRulesBody = ask.body
    rules = {
        urgency: [RuleDraft(one.method_id, one.delay_seconds) for one in drafts]
        for urgency, drafts in ((Urgency.PAGE, body.page), (Urgency.TICKET, body.ticket))
    }
    hours = body.quiet_hours
    quiet = None
    if hours is not None:
        quiet = QuietHours(_minutes(hours.from_), _minutes(hours.until), hours.time_zone)
    async with ask.context.pool.transaction("put_personal_rules") as tx:
        await put_rules(tx, ask.who, rules, quiet)
    return await read_rules(ask)


def spelt_clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"


def _minutes(clock: str) -> int:
    hour, _, minute = clock.partition(":")
    return int(hour) * 60 + int(minute)


_all: Final = partial(Route, path=_ALL, action=OWN, tag="me")
_one: Final = partial(Route, path=_ONE, action=OWN, tag="me")

ROUTES: Final = (
    _all(
        method="GET",
        handler=list_methods,
        summary="List the own contact methods, their secrets masked.",
        answer=list[ContactMethod],
    ),
    _all(
        method="POST",
        handler=create,
        summary="Create a contact method; a code verifies it.",
        body=CreateContactMethod,
        answer=ContactMethod,
        status=201,
        also=(409,),
    ),
    _one(
        method="PATCH",
        handler=update,
        summary="Change the label of a contact method, or disable it.",
        body=PatchContactMethod,
        answer=ContactMethod,
    ),
    _one(
        method="DELETE",
        handler=delete,
        summary="Delete a contact method with its rules and waiting messages.",
        status=204,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/code",
        action=OWN,
        handler=send_code,
        summary="Send a new code to a contact method.",
        tag="me",
        answer=Tested,
        also=(400, 429),
    ),
    Route(
        method="POST",
        path=f"{_ONE}/verify",
        action=OWN,
        handler=verify,
        summary="Verify a contact method by its code.",
        tag="me",
        body=ContactCode,
        answer=ContactMethod,
    ),
    Route(
        method="POST",
        path=f"{_ONE}/test",
        action=OWN,
        handler=test,
        summary="Send a test message to a verified contact method, once.",
        tag="me",
        answer=Tested,
        also=(400, 429),
    ),
    *setting_routes(
        _RULES,
        read_rules,
        write_rules,
        OWN,
        tag="me",
        body=PersonalRulesBody,
        answer=PersonalRulesBody,
        summaries=(
            "Read which contact methods are notified when.",
            "Set which contact methods are notified when, and the quiet hours.",
        ),
    ),
)
