"""Postmortems on status pages: public only if they are published, and then in all outputs."""

from typing import Any

from tests.support.app.cast import Api

TEXT = "A switch died in Hall 4."


async def put(api: Api, incident: object, **body: Any) -> Any:
    path = f"/api/v1/incidents/{incident}/postmortem"
    response = await api.ask("editor", "PUT", path, {"body": TEXT, **body})
    assert response.status_code == 200, await response.get_data()
    return await response.get_json()


async def outputs_with_text(api: Api, slug: str) -> set[str]:
    """Returns the outputs of the page that contain the postmortem."""
    public = f"/api/v1/public/status-pages/{slug}"
    paths = {
        "json": public,
        "json history": f"{public}/history",
        "html history": f"/status/{slug}/history",
        "rss": f"{public}/feed?format=rss",
        "atom": f"{public}/feed?format=atom",
        "json feed": f"{public}/feed?format=json",
        "statuspage": f"/status/{slug}/api/v2/incidents.json",
    }
    found = set()
    for name, whole in paths.items():
        path, _, query = whole.partition("?")
        given = dict([query.split("=")]) if query else {}
        response = await api.ask("nobody", "GET", path, query=given)
        assert response.status_code == 200, name
        if TEXT in await response.get_data(as_text=True):
            found.add(name)
    return found


async def test_a_postmortem_is_in_all_outputs_or_in_none(api: Api) -> None:
    page = await api.new_status_page(slug="harbour")
    await api.new_component(page, monitor=(await api.new_monitor()).uid)
    incident = await api.new_incident()
    path = f"/api/v1/incidents/{incident}/updates"
    assert (await api.ask("editor", "POST", path, {"status": "resolved"})).status_code == 201
    everywhere = {
        "json",
        "json history",
        "html history",
        "rss",
        "atom",
        "json feed",
        "statuspage",
    }

    written = await put(api, incident)
    assert (written["published"], "published_at" in written) == (False, False)
    assert await outputs_with_text(api, "harbour") == set()

    written = await put(api, incident, published=True)
    assert written["published"] is True
    assert written["published_at"] >= written["created_at"]
    assert await outputs_with_text(api, "harbour") == everywhere

    assert (await put(api, incident, published=False))["published"] is False
    assert await outputs_with_text(api, "harbour") == set()
    targets = await api.rows(
        "select target from audit_entries where action = 'incident.postmortem' order by id"
    )
    assert [target.partition(" ")[2].rpartition(" ")[2] for (target,) in targets][1:] == [
        "published=false->true",
        "published=true->false",
    ]
