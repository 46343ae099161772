"""Routes of cover requests and swaps."""

from functools import partial
from typing import Final

from ....storage.accounts.rules.access import Need, Permission
from ....storage.core.instant import Instant, to_text
from ....storage.oncall.queries.cover_requests import select_cover_requests
from ....storage.oncall.queries.oncall_schedules import select_schedule
from ....storage.oncall.rows import CoverRequestRow
from ....storage.oncall.rules.cover import CoverSpan
from ....storage.oncall.transactions.cover_duties import (
    ACCEPT,
    CoverDraft,
    accept_cover,
    request_cover,
    withdraw_cover,
)
from ....storage.oncall.transactions.edit_schedules import EDIT
from ...wire.errors import Problem
from ...wire.route import Request, Route
from ...wire.schema import instant_text, known
from ...wire.time_params import instant_given, instant_if_given
from ..schemas import CoverRequest, CreateCoverRequest

_ALL: Final = "/api/v1/oncall-schedules/{scheduleID}/cover-requests"
_ONE: Final = "/api/v1/oncall-cover-requests/{requestID}"


def cover_json(row: CoverRequestRow) -> CoverRequest:
    return CoverRequest(
        id=row.uid,
        schedule_id=row.schedule_uid,
        channel_id=row.channel_uid,
        channel_name=row.channel_name,
        wanted_id=known(row.wanted_uid),
        wanted_name=known(row.wanted_name),
        starts_at=to_text(row.starts_at),
        ends_at=to_text(row.ends_at),
        return_starts_at=instant_text(row.return_starts_at),
        return_ends_at=instant_text(row.return_ends_at),
        note=row.note,
        created_by=row.author_label,
        created_at=to_text(row.created_at),
        accepted_by_id=known(row.accepted_by_uid),
        accepted_by_name=known(row.accepted_by_name),
        accepted_at=instant_text(row.accepted_at),
    )


async def list_requests(ask: Request) -> list[CoverRequest]:
    async with ask.context.pool.transaction("list_cover_requests", read_only=True) as tx:
        schedule = await select_schedule(tx, ask.ids["scheduleID"])
        if schedule is None:
            raise Problem("not_found")
        rows = await select_cover_requests(tx, schedule.org, [schedule.id])
    return [cover_json(row) for row in rows]


async def create(ask: Request) -> CoverRequest:
    body = ask.body
    draft = CoverDraft(
        body.channel_id,
        body.wanted_id,
        CoverSpan(
            instant_given("starts_at", body.starts_at), instant_given("ends_at", body.ends_at)
        ),
        _returned(body),
        body.note,
    )
    async with ask.context.pool.transaction("request_cover") as tx:
        return cover_json(await request_cover(tx, ask.who, ask.ids["scheduleID"], draft))


def _returned(body: CreateCoverRequest) -> CoverSpan | None:
    spans: list[Instant | None] = [
        instant_if_given("return_starts_at", body.return_starts_at),
        instant_if_given("return_ends_at", body.return_ends_at),
    ]
    starts_at, ends_at = spans
    if starts_at is None and ends_at is None:
        return None
    if starts_at is None or ends_at is None:
        raise Problem("return_ends_at: needs return_starts_at, and the reverse")
    return CoverSpan(starts_at, ends_at)


async def accept(ask: Request) -> CoverRequest:
    async with ask.context.pool.transaction("accept_cover") as tx:
        return cover_json(await accept_cover(tx, ask.who, ask.ids["requestID"]))


async def withdraw(ask: Request) -> None:
    async with ask.context.pool.transaction("withdraw_cover") as tx:
        await withdraw_cover(tx, ask.who, ask.ids["requestID"])


_all: Final = partial(Route, path=_ALL, scope=("schedule", "scheduleID"), tag="oncall")
_one: Final = partial(Route, scope=("cover_request", "requestID"), tag="oncall")

ROUTES: Final = (
    _all(
        method="GET",
        action=Permission(Need.VIEWER),
        handler=list_requests,
        summary="Cover requests of the schedule that are not over, in order of their start.",
        answer=list[CoverRequest],
    ),
    _all(
        method="POST",
        action=EDIT,
        handler=create,
        summary="Ask others for cover of a span of duty, possibly in return for a span of theirs.",
        body=CreateCoverRequest,
        answer=CoverRequest,
        status=201,
        also=(409,),
    ),
    _one(
        method="POST",
        path=f"{_ONE}/accept",
        action=ACCEPT,
        handler=accept,
        summary="Accept a cover request in the name of the caller; overrides are created.",
        answer=CoverRequest,
        also=(409,),
    ),
    _one(
        method="DELETE",
        path=_ONE,
        action=EDIT,
        handler=withdraw,
        summary="Withdraw an open cover request.",
        status=204,
        also=(409,),
    ),
)
