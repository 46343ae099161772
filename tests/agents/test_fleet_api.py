"""The fleet in the API: live processes, and the pending jobs of each region."""

from typing import Any

from uuid_utils.compat import uuid7

from leadline.storage.core.instant import SECOND, Instant
from leadline.storage.scheduling.tables import presences
from tests.support.app.cast import Api

PATH = "/api/v1/admin/fleet"


async def fleet(api: Api) -> Any:
    answer = await api.ask("global_admin", "GET", PATH)
    assert answer.status_code == 200
    return await answer.get_json()


async def present(api: Api, host: str, role: str, regions: list[str], ago_seconds: int) -> str:
    uid = uuid7()
    async with api.pool.transaction("present") as tx:
        at = Instant(tx.now - ago_seconds * SECOND)
        await presences.begin_presence(
            tx, uid, at, host, [role], regions, "0.3.8", accepts_pushes=False
        )
    return str(uid)


async def test_only_live_processes_are_listed(api: Api) -> None:
    worker = await present(api, "b", "worker", ["eu", "core"], 3)
    server = await present(api, "a", "api", [], 0)
    await present(api, "c", "worker", ["core"], 16)
    found = (await fleet(api))["processes"]
    assert [(one["process_id"], one["host"], one["roles"]) for one in found] == [
        (server, "a", ["api"]),
        (worker, "b", ["worker"]),
    ]
    assert "region" not in found[0]
    assert found[1]["region"] == "eu"
    assert set(found[1]) == {"process_id", "host", "roles", "region", "version", "from", "through"}


async def test_every_configured_region_is_listed_with_its_pending_jobs(api: Api) -> None:
    await api.new_monitor(region="eu")
    await present(api, "b", "worker", ["eu"], 0)
    assert (await fleet(api))["regions"] == [
        {"name": "core", "live": False, "workers": 0, "agents": 0, "pending_jobs": 0},
        {
            "name": "eu",
            "live": True,
            "workers": 1,
            "agents": 0,
            # The job that a new monitor gets in addition to its schedule.
            "pending_jobs": 1,
            "lag_seconds": 0.0,
        },
    ]
