"""The export of a random project, applied to an empty project, creates the same project.

Status pages are tested apart, since their slugs are unique in the installation.
"""

import random
from typing import Any

import pytest
import trustme

from leadline.probes.senders.webhook import secret_from
from tests.bundles.test_bundle_on_call_api import bundle, prepare, random_sections, with_mail
from tests.bundles.test_bundle_settings_api import with_settings
from tests.bundles.test_bundle_webhooks_api import apply, exported, make, random_webhooks
from tests.bundles.test_bundles_api import release
from tests.support.app.cast import Api
from tests.support.app.serving import call
from tests.support.peers.real_servers import pems
from tests.support.run import effort

WHO = "org_admin"
SIGNING = ("signing", "spare")


@pytest.fixture(scope="module")
def identity() -> tuple[str, str]:
    """Returns a client certificate and its key, in PEM."""
    return pems(trustme.CA().issue_cert("leadline.example.org"))


async def create_secrets(api: Api, project: Any, key: str) -> None:
    values = {"key": key, **{name: secret_from(name.encode() * 5) for name in SIGNING}}
    for name, value in values.items():
        body = {"name": name, "value": value}
        await call(api, "POST", f"/projects/{project}/secrets", body, 201)


@pytest.mark.parametrize("seed", effort.varied(range(4), range(60)))
async def test_an_export_creates_the_same_project(
    api: Api, identity: tuple[str, str], seed: int
) -> None:
    mill = api.projects["acme/mill"][1]
    email = await prepare(api)
    await prepare(api, mill)
    for project in (api.project, mill):
        await create_secrets(api, project, identity[1])
    await make(api)
    rnd = random.Random(seed)
    sections = with_settings(rnd, with_mail(random_sections(rnd), email))
    sections["monitors"] = with_checks(rnd, sections["monitors"], identity[0])
    sections["webhooks"] = random_webhooks(rnd, SIGNING)
    document = bundle(**sections)
    await apply(api, document)
    if seed % 2:
        await release(api)
    found = await exported(api)
    expect_stated(document, found)
    assert set((await apply(api, found, "?name=any")).values()) <= {"unchanged"}
    copy = {**found, "project": "mill"}
    path = f"/projects/{mill}/bundle"
    await call(api, "POST", f"{path}/apply", copy, who=WHO)
    assert await call(api, "GET", path, who=WHO) == copy
    again = await call(api, "POST", f"{path}/plan", copy, who=WHO)
    assert {one["action"] for one in again["changes"]} <= {"unchanged"}


def expect_stated(document: dict[str, Any], found: dict[str, Any]) -> None:
    """Checks that the export has the settings of monitors and webhooks that were applied."""
    for uid, entry in document["monitors"].items():
        for name in ("slow_above_ms", "slow_runs", "regional", "config"):
            if name in entry:
                assert found["monitors"][uid][name] == entry[name], (uid, name)
    stated = [tuple(sorted(one.items())) for one in document["webhooks"].values()]
    assert stated == [tuple(sorted(one.items())) for one in found.get("webhooks", {}).values()]


def with_checks(rnd: random.Random, monitors: dict[str, Any], chain: str) -> dict[str, Any]:
    """Returns the monitors with slow warnings and client certificates, and with a regional one."""
    for entry in monitors.values():
        if rnd.random() < 0.5:
            entry |= {"slow_above_ms": rnd.randint(1, 600_000), "slow_runs": rnd.choice([1, 2, 20])}
        if rnd.random() < 0.5:
            entry["config"] = {"client_cert": chain, "client_key_ref": "key"}
    if rnd.random() < 0.7:
        settings: dict[str, Any] = {
            "type": "http",
            "target": "https://shop.example.org/",
            "auto_incident": False,
        }
        if rnd.random() < 0.5:
            settings["slow_above_ms"] = 800
        parts = {f"r-{place}": {**settings, "region": place} for place in ("core", "eu")}
        monitors |= {uid: {**part, "name": f"R {part['region']}"} for uid, part in parts.items()}
        config = {"mode": "quorum", "quorum": rnd.choice([1, 2]), "children": list(parts)}
        monitors["r"] = {"name": "R", "type": "composite", "regional": True, "config": config}
    return monitors
