"""Canaries in the console: the form with its example, and the text of a refused run."""

import json
import re
from urllib.parse import urlencode

import pytest

from leadline.http.monitors.form.examples import EXAMPLES, with_examples
from leadline.http.ui.failure_help import REFUSALS
from leadline.probes.check.check import validate
from leadline.storage.core.instant import DAY, MINUTE, Instant
from leadline.storage.monitors.rows import MonitorRow
from leadline.storage.scheduling.rules.expected_run import WithheldReason
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.peers.job_queue import polled

EXAMPLE = EXAMPLES["async_canary", "workflow"]
_BEAT = """
insert into heartbeats (org, monitor, ts, latency_ms, up, msg)
values (%(org)s, %(id)s, at(%(ts)s), 0, false, %(msg)s)
"""
_RUN = """
insert into expected_runs (org, monitor, due_at, verdict, reason, settled_at)
values (%(org)s, %(id)s, at(%(ts)s), 'withheld', %(msg)s, at(%(ts)s))
"""
_CREATED = "update monitors set created_at = at(%(at)s) where org = %(org)s and id = %(id)s"
_STATE = """
update monitor_states set status = 'down', failures = 1, since = at(%(ts)s)
where org = %(org)s and monitor = %(id)s
"""


async def sent(api: Api, **form: str) -> tuple[int, str]:
    fields = {"type": "async_canary", "fields": "async_canary", "name": "Order"}
    fields |= {"interval_seconds": "3600", "timeout_seconds": "120", "region": "core", **form}
    answer = await api.ask(
        "editor",
        "POST",
        f"/projects/{api.project}/monitors/new",
        data=urlencode(fields).encode(),
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    return answer.status_code, await answer.get_data(as_text=True)


async def shown(api: Api, path: str) -> str:
    answer = await api.ask("editor", "GET", path)
    assert answer.status_code == 200
    return " ".join((await answer.get_data(as_text=True)).split())


async def test_the_form_offers_an_hour_and_only_fields_of_a_canary(api: Api) -> None:
    page = await shown(api, f"/projects/{api.project}/monitors/new?type=async_canary")
    assert "1 to 3,600" in page
    assert "Total of all stages" in page
    assert 'name="confirm_interval_seconds"' not in page
    assert "Must be 0: a run makes one transaction." in page
    assert "0 to 10" not in page
    assert "Insert example" in page
    other = await shown(api, f"/projects/{api.project}/monitors/new?type=synthetic")
    assert 'name="confirm_interval_seconds"' in other
    assert "Insert example" not in other
    assert "1 to 300" in other


async def test_the_example_may_be_saved_as_it_is(api: Api) -> None:
    assert validate("async_canary", "", None, {"workflow": EXAMPLE}, []) == []
    status, page = await sent(api, act="example")
    assert status == 200
    assert "async_transaction_v1" in page
    assert "Insert example" not in page
    status, page = await sent(api, act="save", **{"config.workflow": EXAMPLE})
    assert status == 303, page


def test_an_example_replaces_no_typed_value() -> None:
    typed = {"config.workflow": ["{}"], "name": ["Order"]}
    assert with_examples("async_canary", typed) == typed
    assert with_examples("synthetic", {}) == {}


@pytest.mark.parametrize(
    ("interval", "timeout", "then"),
    [("60", "10", "60"), ("59", "10", "10"), ("600", "20", "20"), ("x", "10", "10")],
)
def test_an_example_has_the_time_that_it_takes(interval: str, timeout: str, then: str) -> None:
    typed = {"interval_seconds": [interval], "timeout_seconds": [timeout]}
    assert with_examples("async_canary", typed)["timeout_seconds"] == [then]


async def test_an_error_of_the_workflow_is_shown_at_its_field(api: Api) -> None:
    document = {**json.loads(EXAMPLE), "tidy_up": True}
    status, page = await sent(api, act="save", **{"config.workflow": json.dumps(document)})
    assert status == 400
    assert re.search(r'id="wrong-config-workflow">[^<]*tidy_up is not known', page)


async def test_each_binding_asks_for_its_secret(api: Api) -> None:
    await api.new_secret(name="shop-api")
    workflow = {"config.workflow": json.dumps(polled())}
    status, page = await sent(api, act="save", **workflow)
    assert status == 400
    assert 'id="wrong-config-canary_secret_key_ref"' in page
    chosen = {"config.canary_secret_key_ref": "shop-api"}
    status, page = await sent(api, act="test", **workflow, **chosen)
    assert status == 400
    assert "it is tested once it is saved" in page
    status, page = await sent(api, act="save", **workflow, **chosen)
    assert status == 303, page


async def refused(api: Api, reason: str) -> MonitorRow:
    """Inserts a refused window in the ledger, the results and the state of a monitor."""
    row = await api.new_monitor(
        name="Order", type="async_canary", target="", config={"workflow": EXAMPLE}
    )
    given = {"org": row.org, "id": row.id, "ts": Instant(FROZEN_NOW - MINUTE), "msg": reason}
    async with api.pool.transaction("refused") as tx:
        for statement in (_BEAT, _RUN):
            await tx.execute(statement, **given)
        created = Instant(FROZEN_NOW - 2 * DAY)
        await tx.execute(_CREATED, org=row.org, id=row.id, at=created)
        await tx.execute(_STATE, org=row.org, id=row.id, ts=given["ts"])
    return row


@pytest.mark.parametrize("reason", sorted(REFUSALS))
async def test_a_refused_run_is_explained_and_has_no_failed_phase(api: Api, reason: str) -> None:
    row = await refused(api, reason)
    page = await shown(api, f"/monitors/{row.uid}")
    assert f"{REFUSALS[reason].partition('. ')[0].rstrip('.')}, 1 consecutive failure." in page
    assert "Not run" in page
    assert "Failed in" not in page
    assert '<td class="num wide"></td>' in page, "it took no time at all"
    assert "Phases of the last check" not in page
    assert f"<b>1 {reason.replace('_', ' ')}</b>: {REFUSALS[reason]}" in page
    assert "Recheck delay" not in page


def test_every_refusal_of_a_dispatch_has_its_words() -> None:
    ours = {"paused", "maintenance", "awaiting_first", "children_unknown"}
    assert set(REFUSALS) == set(WithheldReason) - ours
