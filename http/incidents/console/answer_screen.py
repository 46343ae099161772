"""Page of a link in a message, by which a person answers.

A GET changes nothing, as mail programs fetch links. The token in the path is the credential: its
holder reads the title and the state of one incident, and answers once.
"""

from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

import msgspec

from ....storage.accounts.queries.principals import select_by_person
from ....storage.accounts.rules.access import AccessDecision, Need, Permission, Scope, may
from ....storage.accounts.transactions.authorize import FORBIDDEN, NOT_FOUND
from ....storage.core.instant import Instant
from ....storage.core.refusal import Refused
from ....storage.engine.pools import Tx
from ....storage.incidents.queries.incidents import select_incident
from ....storage.incidents.queries.message_answers import AnswerableMessage, select_answerable
from ....storage.incidents.rows import IncidentRow
from ....storage.incidents.rules.answer_link import (
    AnswerAction,
    LinkState,
    acknowledged_words,
    link_state,
    possible_answers,
)
from ....storage.incidents.rules.incident import BODY_LONGEST, IncidentStatus
from ....storage.incidents.transactions.answer_incident import IncidentAnswer
from ....storage.incidents.transactions.answer_message import answer_message, event_of
from ....storage.services.queries.pickable_objects import PickableKind
from ...auth.csrf import is_cross_site
from ...ui.form_routes import page_route
from ...ui.form_values import stripped
from ...ui.formatting import moment, number
from ...ui.pickers.objects import options_of, options_page
from ...ui.render import page
from ...wire.errors import Problem
from ...wire.route import Request, Response
from .answer_fields import AnswerFields, answer_fields, answer_of_form, possible_action, words_of

PATH: Final = "/answer/{token}"


class RecipientQuery(msgspec.Struct, frozen=True):
    kind: Literal["assignee"] = "assignee"
    q: str = ""


_TEMPLATE: Final = "incidents/console/answer_screen.html"
_DONE: Final = {
    AnswerAction.RESOLVE: "Resolved.",
    AnswerAction.NOTE: "The note was added.",
    AnswerAction.SNOOZE: "Snoozed. The escalation continues afterwards.",
    AnswerAction.REASSIGN: "Reassigned.",
}
_SAID: Final = {
    "forbidden": "Your role in the project does not allow it. Ask an editor.",
    "incident_resolved": "The incident is already resolved. You can still add a note.",
    "update_quota": "The incident has no room for another note.",
}


async def show_answer(ask: Request) -> Response:
    return await _render(ask)


async def submit_answer(ask: Request) -> Response:
    if is_cross_site(ask.method, ask.headers, ask.context.options.public_base_url):
        raise Problem("forbidden")
    event = event_of(ask.words["token"], ask.context.keyring)
    if event is None:
        return _gone()
    try:
        answer = await _answer(ask, event)
        async with ask.context.pool.transaction("answer_message") as tx:
            row = await answer_message(tx, event, answer)
            is_snoozed = row.is_snoozed(tx.now)
    except Refused as refused:
        if refused.code in ("not_found", "link_used", "link_expired"):
            return await _render(ask)
        said = _SAID.get(refused.code) or words_of(refused)
        return await _render(ask, fault=said)
    ask.context.on_told()
    if answer.action is AnswerAction.ACKNOWLEDGE:
        return await _render(ask, done=acknowledged_words(is_snoozed=is_snoozed))
    return await _render(ask, done=_DONE[answer.action])


async def _answer(ask: Request, event: UUID) -> IncidentAnswer:
    """Raises: Refused not_found, if the message was deleted or the link cannot be used any more;
    forbidden, if its person may not reassign: the refusal of a text would name people.
    """
    # An unknown action is refused before a read of the message.
    action = possible_action(ask)
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        message = await select_answerable(tx, event)
        row = None if message is None else await select_incident(tx, message.incident_uid)
        if message is None or row is None or not _is_open(message, tx.now):
            raise Refused(NOT_FOUND)
        if action is AnswerAction.REASSIGN and not await _may_name_people(tx, row, message):
            raise Refused(FORBIDDEN)
        return await answer_of_form(ask, tx, row.org, row.project)


async def render_recipients(ask: Request) -> Response:
    """Returns the recipients of a reassignment as HTML, while the link can be used."""
    event = event_of(ask.words["token"], ask.context.keyring)
    if event is None:
        raise Problem("not_found")
    async with ask.context.pool.transaction("console_pick", read_only=True) as tx:
        message = await select_answerable(tx, event)
        row = None if message is None else await select_incident(tx, message.incident_uid)
        if message is None or row is None or not _is_open(message, tx.now):
            raise Problem("not_found")
        if not await _may_name_people(tx, row, message):
            raise Problem("forbidden")
        found = await options_of(tx, row.org, row.project, PickableKind.ASSIGNEE, ask.query.q)
    return options_page(found)


async def _render(ask: Request, *, fault: str = "", done: str = "") -> Response:
    event = event_of(ask.words["token"], ask.context.keyring)
    if event is None:
        return _gone()
    async with ask.context.pool.transaction("read_answer", read_only=True) as tx:
        message = await select_answerable(tx, event)
        row = None if message is None else await select_incident(tx, message.incident_uid)
        fields = await _fields(ask, tx, row, message) if row and message else None
        now = tx.now
    if message is None or row is None:
        return _gone()
    state = link_state(message.written_at, message.answered_at, now)
    return page(
        _TEMPLATE,
        status=400 if fault else 200,
        row=row,
        started=moment(row.started_at, now),
        state=state.value,
        actions=_actions(row, state),
        told=done or _used(message),
        fault=fault,
        path=ask.path,
        typed=stripped(ask, "body") if fault else "",
        answer_fields=fields,
        snoozed=moment(row.snoozed_until, now) if row.snoozed_until else None,
        body_longest=number(BODY_LONGEST),
    )


async def _fields(
    ask: Request, tx: Tx, row: IncidentRow, message: AnswerableMessage
) -> AnswerFields | None:
    """Returns the fields of an answer while the link can be used."""
    if not _is_open(message, tx.now):
        return None
    path = f"{ask.path}/pick?kind={PickableKind.ASSIGNEE}"
    fields = await answer_fields(ask, tx, row, path)
    return fields if await _may_name_people(tx, row, message) else replace(fields, options=())


async def _may_name_people(tx: Tx, row: IncidentRow, message: AnswerableMessage) -> bool:
    """Returns whether the person of the link is an editor now. Viewers search no people."""
    who = await select_by_person(tx, message.user)
    if who is None:
        return False
    return may(who, Permission(Need.EDITOR), Scope(row.org, row.project)) is AccessDecision.ALLOWED


def _is_open(message: AnswerableMessage, now: Instant) -> bool:
    return link_state(message.written_at, message.answered_at, now) is LinkState.OPEN


def _actions(row: IncidentRow, state: LinkState) -> list[str]:
    if state is not LinkState.OPEN:
        return []
    answers = possible_answers(
        is_resolved=row.status == IncidentStatus.RESOLVED,
        is_acknowledged=row.is_acknowledged,
    )
    return [one.value for one in answers]


def _used(message: AnswerableMessage) -> str:
    return f"This link was used: {message.action}." if message.action else ""


def _gone() -> Response:
    return page(_TEMPLATE, status=404, row=None)


_NOBODY: Final = Permission(Need.NOBODY)

ROUTES: Final = (
    page_route(
        method="GET",
        path=f"{PATH}/pick",
        action=_NOBODY,
        handler=render_recipients,
        summary="Recipients of a reassignment, for the type-ahead field of an answer.",
        query=RecipientQuery,
    ),
    page_route(
        method="GET",
        path=PATH,
        action=_NOBODY,
        handler=show_answer,
        summary="An incident of a message, and how to answer.",
    ),
    page_route(
        method="POST",
        path=PATH,
        action=_NOBODY,
        handler=submit_answer,
        summary="Answer a message about an incident.",
    ),
)
