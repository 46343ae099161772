"""What needs attention on the overview: services, monitors and regions, each with its cause."""

import re

from leadline.storage.core.instant import DAY, SECOND
from leadline.storage.services.transactions.declare_service import DeclarationDraft, declare
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api

from ..incidents.test_incidents_screen import seen
from ..server.test_unknown_is_shown_screen import partitioned, result


def items(page: str) -> list[str]:
    """The visible text of each item of the list."""
    block = page.partition('<ul class="alerts">')[2].partition("</ul>")[0]
    texts = [re.sub(r"<[^>]*>", " ", item) for item in block.split("<li>")[1:]]
    return [re.sub(r"\s+", " ", text).strip() for text in texts]


async def test_a_down_monitor_states_its_failed_condition_and_its_incident(api: Api) -> None:
    await partitioned(api)
    row = await api.new_monitor(
        name="Checkout", conditions=["[STATUS] == 200"], failure_threshold=1
    )
    await result(api, row, SECOND, up=False, status="down")
    async with api.pool.transaction("condition") as tx:
        await tx.execute(
            "update heartbeats h set failed_condition = c.id, measured = '503'"
            " from monitor_conditions c where c.org = h.org and c.monitor = h.monitor"
        )
    found = items(await seen(api, f"/projects/{api.project}"))
    assert len(found) == 1
    assert "Checkout is down" in found[0]
    assert "Failed: [STATUS] == 200 (503) . The host refused the connection" in found[0]
    assert "Acknowledge" not in found[0]
    incident = await api.new_incident(monitor=row.uid)
    found = items(await seen(api, f"/projects/{api.project}"))
    assert "Open incident" in found[0]
    # Who may acknowledge does so in the list.
    page = await seen(api, f"/projects/{api.project}", who="editor")
    assert f'action="/incidents/{incident}"><button class="btn small main" name="act"' in page


async def test_a_service_names_the_members_that_make_it_unhealthy(api: Api) -> None:
    await partitioned(api)
    member = await api.new_monitor(name="Payments", failure_threshold=1)
    await result(api, member, SECOND, up=False, status="down")
    service = await api.new_service(name="Checkout")
    async with api.pool.transaction("declare") as tx:
        draft = DeclarationDraft(expected_revision=0, monitors=[member.uid], sli=[member.uid])
        await declare(tx, api.editor, api.project, service, draft, 30)
        await tx.execute(
            "update service_revisions set governs_from = at(%(at)s), effective_at = at(%(at)s)",
            at=FROZEN_NOW - DAY,
        )
    found = items(await seen(api, f"/projects/{api.project}"))
    assert found[0].startswith("Checkout is down"), found
    assert "Payments is down." in found[0]


async def test_a_region_that_does_not_report_is_one_item(api: Api) -> None:
    for n in range(3):
        await api.new_monitor(name=f"Monitor {n}")
    found = items(await seen(api, f"/projects/{api.project}"))
    assert found == [
        "Region core is not reporting No worker or agent reports, so 3 monitors cannot be checked."
    ]
