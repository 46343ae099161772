"""The number of statements that store an external alert, each a round trip to the database."""

from typing import Any

import pytest

from leadline.storage.engine.transaction import Tx
from tests.support.app.cast import Api
from tests.support.app.serving import call

from .test_alertmanager_api import alert, payload, send


async def test_an_alert_takes_few_statements(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    body = {"url": "https://hooks.example.org/x"}
    path = f"/organizations/{api.org}/webhooks"
    await call(api, "POST", path, body, 201, who="org_admin")
    # The first event of a webhook makes its destination.
    await send(api, payload(alert("first")))
    names: list[str] = []
    run = Tx._run

    async def counted(tx: Tx, *given: Any) -> Any:
        names.append(tx.name)
        return await run(tx, *given)

    monkeypatch.setattr(Tx, "_run", counted)
    await send(api, payload(alert("second")))
    assert names.count("ingest_alert") == 10
    rows = await api.rows("select count(*) from outbox")
    assert rows == [(2,)]
