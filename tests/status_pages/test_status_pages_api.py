"""Management of status pages: slugs, visibility, access and unlisted tokens."""

from typing import Any

import pytest

from leadline.http.status_pages.schemas.status_pages import StatusPage
from leadline.storage.core.instant import to_text
from leadline.storage.core.token import TokenKind, digest, kind_of
from leadline.storage.engine.keyring import Keyring
from leadline.storage.monitors.transactions.rotate_encryption import Position, reencrypt_all
from leadline.storage.status_pages.rules.status_page_edit import PAGES_OF_ORGANIZATION_MOST
from leadline.storage.status_pages.transactions import edit_pages
from tests.conftest import FROZEN_NOW
from tests.support.app.cast import Api
from tests.support.app.serving import NOWHERE, call

OWNER = "org_admin"


def all_of(api: Api, tenant: str = "acme") -> str:
    return f"/organizations/{api.orgs[tenant][1]}/status-pages"


async def make(api: Api, slug: str = "shop", status: int = 201, /, **given: Any) -> Any:
    body = {"slug": slug, "title": "The shop", **given}
    return await call(api, "POST", all_of(api), body, status, who=OWNER)


async def edit(api: Api, page: Any, status: int = 200, /, **body: Any) -> Any:
    return await call(api, "PATCH", f"/status-pages/{page['id']}", body, status, who=OWNER)


async def read(api: Api, page: Any, who: str = OWNER) -> Any:
    return await call(api, "GET", f"/status-pages/{page['id']}", who=who)


async def listed(api: Api, who: str = OWNER) -> list[str]:
    return [page["slug"] for page in await call(api, "GET", all_of(api), who=who)]


async def stored(api: Api) -> list[tuple[Any, ...]]:
    return await api.rows("select t::text from status_pages t order by id")


async def audited(api: Api) -> list[tuple[str, str]]:
    """Returns the audit entries of pages and components: action and target."""
    return [
        (action, target)
        for action, target in await api.rows(
            "select action, target from audit_entries where action like 'status%%' order by id"
        )
    ]


async def test_a_page_is_created_listed_read_edited_and_deleted(api: Api) -> None:
    made = await make(api)
    assert made == {
        "id": made["id"],
        "org_id": str(api.org),
        "slug": "shop",
        "title": "The shop",
        "visibility": "listed",
        "branding": {"accent_color": "", "logo_url": "", "footer_text": "", "support_url": ""},
        "timezone": "UTC",
        "language": "auto",
        "created_at": to_text(FROZEN_NOW),
        "updated_at": to_text(FROZEN_NOW),
    }
    assert set(made) <= set(StatusPage.__struct_fields__)
    assert await call(api, "GET", all_of(api), who="viewer") == [made]
    assert await read(api, made, "viewer") == made
    assert (await edit(api, made, title="Shopping"))["title"] == "Shopping"
    page = f"/status-pages/{made['id']}"
    assert await call(api, "DELETE", page, status=204, who=OWNER) is None
    await call(api, "GET", page, status=404, who=OWNER)
    assert await listed(api) == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"slug": "Shop"}, "slug: "),
        ({"slug": "-shop"}, "slug: "),
        ({"slug": "s" * 64}, "slug: "),
        ({"slug": "shop\n"}, "slug: "),
        ({"title": ""}, "title: "),
        ({"title": " "}, "title: must not be blank"),
        ({"title": "x" * 201}, "title: "),
        ({"title": "a\tb"}, "title: must not contain control characters"),
        ({"visibility": "hidden"}, "visibility: "),
        ({"project_id": NOWHERE}, "project_id: is not a project of this organization"),
        ({"project_id": "shop"}, "project_id: "),
        ({"components": []}, "invalid JSON body"),
        ({"unlisted_token": "x"}, "invalid JSON body"),
    ],
)
async def test_an_invalid_page_is_refused_with_its_field(
    api: Api, body: dict[str, Any], error: str
) -> None:
    refused = await make(api, "shop", 400, **{"slug": "shop", **body})
    assert refused["error"].startswith(error)
    assert await stored(api) == []
    assert await audited(api) == []


async def test_a_project_of_another_tenant_is_not_found(api: Api) -> None:
    foreign = str(api.projects["other/shop"][1])
    missing = await make(api, "shop", 400, project_id=NOWHERE)
    assert await make(api, "shop", 400, project_id=foreign) == missing


async def test_a_slug_is_unique_in_the_installation(api: Api) -> None:
    await make(api)
    assert await make(api, "shop", 409) == {"error": "slug_taken"}
    body = {"slug": "shop", "title": "Theirs"}
    taken = await call(api, "POST", all_of(api, "other"), body, 409, who="stranger")
    assert taken == {"error": "slug_taken"}
    await call(api, "POST", all_of(api, "other"), {**body, "slug": "theirs"}, 201, who="stranger")
    assert await listed(api) == ["shop"]


async def test_the_page_quota_of_an_organization(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    assert PAGES_OF_ORGANIZATION_MOST >= 100
    monkeypatch.setattr(edit_pages, "PAGES_OF_ORGANIZATION_MOST", 2)
    await make(api, "a")
    await make(api, "b")
    assert await make(api, "c", 409) == {"error": "page_quota"}


async def test_a_project_member_sees_pages_of_the_project_and_organization(
    api: Api,
) -> None:
    pages = {
        "all": await make(api, "all"),
        "shop": await make(api, "shop", project_id=str(api.project)),
        "mill": await make(api, "mill", project_id=str(api.projects["acme/mill"][1])),
    }
    assert pages["shop"]["project_id"] == str(api.project)
    for who, expected in {
        "viewer": ["all", "mill", "shop"],
        "neighbour": ["all", "mill"],
        "shopkeeper": ["all", "shop"],
        "shop_token": ["all", "shop"],
        "global_admin": ["all", "mill", "shop"],
    }.items():
        assert await listed(api, who) == expected, who
        for slug, page in pages.items():
            status = 200 if slug in expected else 404
            await call(api, "GET", f"/status-pages/{page['id']}", status=status, who=who)


async def test_only_editors_of_a_page_see_its_unlisted_token(api: Api) -> None:
    page = await make(api, visibility="unlisted", project_id=str(api.project))
    token = page["unlisted_token"]
    assert kind_of(token) is TokenKind.PAGE
    for who in ("org_admin", "global_admin", "token"):
        assert (await read(api, page, who))["unlisted_token"] == token
        (found,) = await call(api, "GET", all_of(api), who=who)
        assert found["unlisted_token"] == token
    for who in ("viewer", "editor", "project_admin", "shopkeeper", "viewer_token", "shop_token"):
        assert "unlisted_token" not in await read(api, page, who)
        (found,) = await call(api, "GET", all_of(api), who=who)
        assert "unlisted_token" not in found
    ((hashed, sealed),) = await api.rows("select token_hash, token_ciphertext from status_pages")
    assert hashed == digest(token)
    assert token.encode() not in sealed
    assert token not in str(await api.rows("select t::text from audit_entries t"))


async def test_each_change_to_unlisted_creates_a_new_token(
    api: Api,
) -> None:
    page = await make(api)
    assert "unlisted_token" not in page
    tokens = []
    for between in ("listed", "internal"):
        page = await edit(api, page, visibility="unlisted")
        tokens.append(page["unlisted_token"])
        # An edit that keeps the page unlisted keeps its token.
        kept = await edit(api, page, visibility="unlisted", title=f"Until it is {between}")
        assert kept["unlisted_token"] == tokens[-1]
        page = await edit(api, page, visibility=between)
        assert "unlisted_token" not in page
        ((hashed, sealed),) = await api.rows(
            "select token_hash, token_ciphertext from status_pages"
        )
        assert (hashed, sealed) == (None, None)
    assert len(set(tokens)) == 2


async def test_unlisted_pages_need_an_encryption_key(api: Api) -> None:
    page = await make(api)
    object.__setattr__(api.context, "keyring", Keyring(None))
    before = await stored(api)
    missing = {"error": "encryption_key_missing"}
    assert await make(api, "other", 400, visibility="unlisted") == missing
    assert await edit(api, page, 400, visibility="unlisted") == missing
    assert await stored(api) == before
    await edit(api, page, visibility="internal")


async def test_key_rotation_keeps_the_unlisted_token(api: Api) -> None:
    page = await make(api, visibility="unlisted")
    ring = Keyring(b"n" * 32, (b"k" * 32,))
    position: Position | None = Position()
    while position is not None:
        async with api.pool.transaction("reencrypt_all") as tx:
            position = (await reencrypt_all(tx, ring, position)).goes_on
    object.__setattr__(api.context, "keyring", Keyring(b"n" * 32))
    assert (await read(api, page))["unlisted_token"] == page["unlisted_token"]
    object.__setattr__(api.context, "keyring", Keyring(b"l" * 32))
    assert "unlisted_token" not in await read(api, page), (
        "a token that cannot be decrypted is omitted"
    )


async def test_an_encrypted_token_of_another_page_is_refused(api: Api) -> None:
    one = await make(api, "one", visibility="unlisted")
    other = await make(api, "other", visibility="unlisted")
    async with api.pool.transaction("move") as tx:
        await tx.execute(
            "update status_pages set token_ciphertext = o.token_ciphertext"
            " from status_pages o where status_pages.slug = 'one' and o.slug = 'other'"
        )
    assert "unlisted_token" not in await read(api, one)
    assert "unlisted_token" in await read(api, other)


async def test_an_edit_raises_the_generation_and_an_empty_edit_does_not(
    api: Api,
) -> None:
    page = await make(api)
    generations = [await generation(api)]
    bodies: list[Any] = [{"title": "New"}, {"visibility": "unlisted"}, {"visibility": "internal"}]
    for body in bodies:
        await edit(api, page, **body)
        generations.append(await generation(api))
    assert generations == [1, 2, 3, 4]
    before, log = await stored(api), await audited(api)
    await edit(api, page)
    await edit(api, page, title="New", visibility="internal")
    assert (await stored(api), await audited(api)) == (before, log)


async def generation(api: Api) -> int:
    ((found,),) = await api.rows("select generation from status_pages")
    return int(found)


async def test_every_write_has_one_audit_entry_with_ids(api: Api) -> None:
    page = await make(api, project_id=str(api.project))
    named = f"status_page:{page['id']} project:{api.project}"
    await edit(api, page, title="Hidden words")
    await edit(api, page, visibility="unlisted")
    await call(api, "DELETE", f"/status-pages/{page['id']}", status=204, who=OWNER)
    assert await audited(api) == [
        ("status_page.create", named),
        ("status_page.update", named),
        ("status_page.update", f"{named} visibility=listed->unlisted"),
        ("status_page.delete", named),
    ]


async def test_pages_are_deleted_with_their_project_and_organization(api: Api) -> None:
    body = {"slug": "new", "name": "New"}
    org = await call(api, "POST", "/organizations", body, 201, who="global_admin")
    path = f"/organizations/{org['id']}"
    project = await call(api, "POST", f"{path}/projects", body, 201, who="global_admin")
    for slug, given in {"of-all": {}, "of-one": {"project_id": project["id"]}}.items():
        body = {"slug": slug, "title": slug, **given}
        page = await call(api, "POST", f"{path}/status-pages", body, 201, who="global_admin")
        by_hand = {"name": "By hand", "manual_status": "operational"}
        components = f"/status-pages/{page['id']}/components"
        await call(api, "POST", components, by_hand, 201, who="global_admin")
    count = "select count(*) from status_pages", "select count(*) from status_components"
    assert [(await api.rows(query))[0][0] for query in count] == [2, 2]
    await call(api, "DELETE", f"/projects/{project['id']}", status=204, who="global_admin")
    assert [(await api.rows(query))[0][0] for query in count] == [1, 1]
    await call(api, "DELETE", path, status=204, who="global_admin")
    assert [(await api.rows(query))[0][0] for query in count] == [0, 0]
