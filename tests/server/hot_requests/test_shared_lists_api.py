"""Lists that concurrent requests read together: each caller sees what it may see."""

from typing import Any

import trio

from tests.support.app.cast import EVERYBODY, Api


async def made(api: Api, name: str, project: Any = None) -> None:
    body = {"name": name, "type": "push", "interval_seconds": 60}
    path = f"/api/v1/projects/{project or api.project}/monitors"
    assert (await api.ask("org_admin", "POST", path, body)).status_code == 201


async def test_concurrent_callers_see_only_their_own(api: Api) -> None:
    """Editors get push tokens and viewers none, strangers nothing, also in one read."""
    await made(api, "Backup")
    path = f"/api/v1/projects/{api.project}/monitors"
    alone = {
        who: (answer.status_code, await answer.get_data())
        for who in EVERYBODY
        for answer in [await api.ask(who, "GET", path)]
    }
    assert b"push_token" in alone["editor"][1]
    assert b"push_token" not in alone["viewer"][1]
    together: list[tuple[str, tuple[int, Any]]] = []

    async def ask(who: str) -> None:
        answer = await api.ask(who, "GET", path)
        together.append((who, (answer.status_code, await answer.get_data())))

    async with trio.open_nursery() as nursery:
        for who in list(alone) * 6:
            nursery.start_soon(ask, who)
    assert len(together) == 6 * len(alone)
    for who, answer in together:
        assert answer == alone[who], who
    assert api.context.shared_reads.shared, "some callers shared a read"


async def test_a_selection_is_part_of_the_read(api: Api) -> None:
    for name in ("Backup", "Mail", "Web"):
        await made(api, name)
    path = f"/api/v1/projects/{api.project}/monitors"
    found: list[tuple[str, list[str]]] = []

    async def ask(query: str) -> None:
        answer = await api.ask("viewer", "GET", f"{path}?{query}")
        found.append((query, [one["name"] for one in await answer.get_json()]))

    expected = {
        "": ["Backup", "Mail", "Web"],
        "q=mail": ["Mail"],
        "limit=1": ["Backup"],
        "status=up": [],
        "type=http": [],
    }
    async with trio.open_nursery() as nursery:
        for query in list(expected) * 5:
            nursery.start_soon(ask, query)
    assert all(names == expected[query] for query, names in found)
