"""Routes of the secrets of chat buttons. Global admins set them."""

from typing import Final

from ....storage.notifications.queries.answer_secrets import AnswerSecrets, select_answer_secrets
from ....storage.notifications.transactions.put_answer_secrets import EDIT, put_answer_secrets
from ...wire.route import Request, setting_routes
from ...wire.schema import given
from ..schemas.gateway import AnswerButtonsView, SetAnswerButtons


async def read(ask: Request) -> AnswerButtonsView:
    async with ask.context.pool.transaction("read_answer_secrets", read_only=True) as tx:
        return _view(ask, await select_answer_secrets(tx, ask.context.keyring))


async def put(ask: Request) -> AnswerButtonsView:
    body: SetAnswerButtons = ask.body
    async with ask.context.pool.transaction("put_answer_secrets") as tx:
        stored = await put_answer_secrets(
            tx,
            ask.who,
            given(body.slack_signing_secret),
            given(body.telegram_secret),
            ask.context.keyring,
        )
    return _view(ask, stored)


def _view(ask: Request, secrets: AnswerSecrets) -> AnswerButtonsView:
    path = f"{ask.base_url}/api/v1/public/answers"
    return AnswerButtonsView(
        configured=secrets != AnswerSecrets(),
        slack_set=bool(secrets.slack_signing_secret),
        slack_url=f"{path}/slack",
        telegram_set=bool(secrets.telegram_secret),
        telegram_url=f"{path}/telegram",
    )


ROUTES: Final = setting_routes(
    "/api/v1/settings/answer-buttons",
    read,
    put,
    EDIT,
    tag="mail_settings",
    body=SetAnswerButtons,
    answer=AnswerButtonsView,
    summaries=(
        "Read which chat services can answer by buttons, and their URLs.",
        "Set the secrets of chat services that answer by buttons.",
    ),
)
