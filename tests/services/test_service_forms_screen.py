"""The forms of services: creation with declaration and objective in one transaction, and refused
forms that keep their input.
"""

import re
from fractions import Fraction
from html import unescape
from typing import Any

from leadline.storage.core.key import ServiceKey
from leadline.storage.objectives.queries.burn_rules import select_rules_of_services
from leadline.storage.objectives.rules import BurnSeverity
from leadline.storage.services.queries.service_revisions import select_revisions
from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import first_line, send, text_of
from ..server.test_pages_access_screen import POLICIES
from ..support.worlds.service_history import lived

FIELDS = dict(pair.split("=") for pair in POLICIES.split("&"))


async def revisions(api: Api) -> list[Any]:
    ((org, key),) = await api.rows("select org, id from services")
    async with api.pool.transaction("look", read_only=True) as tx:
        return (await select_revisions(tx, [ServiceKey((org, key))]))[ServiceKey((org, key))]


async def services(api: Api) -> int:
    ((many,),) = await api.rows("select count(*) from services")
    return int(many)


async def test_a_service_is_created_with_declaration_and_objective(api: Api) -> None:
    till, bank = await api.new_monitor(name="Till"), await api.new_monitor(name="Bank")
    new = f"/projects/{api.project}/services/new"
    page = await text_of(await api.ask("editor", "GET", new))
    assert '<option value="Till"' in page
    form = {
        **FIELDS,
        "act": "save",
        "revision": "0",
        "name": "Checkout",
        "objective": "99.9 %",
        "window": "7d",
        "member": [bank.uid],
        "sli": [till.uid],
        "missing_data": "bad",
    }
    answer = await send(api, new, form)
    assert answer.status_code == 303
    (revision,) = await revisions(api)
    assert set(revision.monitors) == {till.id, bank.id}
    assert revision.sli == (till.id,)
    assert revision.policies.missing_data.value == "bad"
    assert await api.rows('select "window", objective from service_targets') == [("7d", 999_000)]
    page = await text_of(await api.ask("viewer", "GET", answer.headers["Location"]))
    assert first_line(page) == "Checkout starts at the next minute"
    assert "Its members are measured from then on." in page


async def test_a_refused_form_stores_nothing_and_keeps_its_input(api: Api) -> None:
    till = await api.new_monitor(name="Till")
    new = f"/projects/{api.project}/services/new"
    form = {**FIELDS, "act": "save", "name": "Checkout", "sli": [till.uid], "objective": "99.9"}
    for wrong, told in (
        ({"objective": "100"}, "Objective: must be above 0 and below 100"),
        ({"objective": "many"}, "Objective: must be a number."),
        ({"name": " "}, "Name: must"),
        ({"slug": "A B"}, "Slug: must"),
        ({"healthy_min": "x"}, "Members for healthy: must be a whole number."),
        ({"healthy_min": "1", "degraded_min": "2"}, "Members for degraded: must not be above"),
        ({"active_floor": "soon"}, "Minimum: must be a duration"),
        ({"active_multiplier": "1"}, "Intervals: must be 2 to 10."),
        ({"backfill_from": "2020-01-01T00:00"}, "older results are deleted"),
    ):
        answer = await send(api, new, {**form, **wrong})
        assert answer.status_code == 400, wrong
        page = await text_of(answer)
        assert told in page, wrong
        assert "Your input is kept below" in page
        shown = f'value="{till.uid}" aria-label="Till counts toward the SLI" checked'
        kept = f'name="sli" value="{till.uid}"'
        assert (kept if "objective" in wrong else shown) in page
    assert await services(api) == 0
    stranger = (await api.new_monitor("acme/mill")).uid
    answer = await send(api, new, {**form, "member": [stranger]})
    assert "Members: is not a monitor of this project." in await text_of(answer)
    assert await services(api) == 0


async def test_the_steps_keep_all_input_and_store_nothing_before_the_last(api: Api) -> None:
    till, bank = await api.new_monitor(name="Till"), await api.new_monitor(name="Bank")
    policy = await api.new_policy()
    new = f"/projects/{api.project}/services/new"
    form: dict[str, Any] = {**FIELDS, "name": "Checkout", "sli": [till.uid], "member": [bank.uid]}
    answer = await send(api, f"{new}?step=2", {**form, "name": "", "act": "step.2"})
    assert answer.status_code == 400
    assert "Name: must not be empty." in await text_of(answer)
    page = await text_of(await send(api, f"{new}?step=2", {**form, "act": "step.2"}))
    assert "Continue to paging" in page
    form = {**hidden(page), "objective": "99.95", "window": "7d"}
    assert form["member"] == [str(bank.uid)]
    page = await text_of(await send(api, f"{new}?step=3", {**form, "act": "step.3"}))
    assert "Page from the service" in page
    assert "99.95% over 7 days" in re.sub(r"<[^>]+>", "", page)
    form = {**hidden(page), "policy": policy, "paging": "service", "page_when": "both"}
    page = await text_of(await send(api, f"{new}?step=1", {**form, "act": "step.1"}))
    assert 'value="Checkout"' in page
    assert hidden(page)["paging"] == ["service"]
    assert await services(api) == 0
    answer = await send(api, f"{new}?step=3", {**form, "renotify": "x", "act": "save"})
    assert answer.status_code == 400
    assert await services(api) == 0
    answer = await send(api, f"{new}?step=3", {**form, "renotify": "900", "act": "save"})
    assert answer.status_code == 303
    (revision,) = await revisions(api)
    assert revision.sli == (till.id,)
    assert await api.rows('select "window", objective from service_targets') == [("7d", 999_500)]
    (row,) = await api.rows(
        "select owns_paging, page_on, renotify_seconds from service_alerting where owns_paging"
    )
    assert row == (True, ["down", "degraded"], 900)


def hidden(page: str) -> dict[str, Any]:
    """Returns the values of the hidden fields of the form."""
    found: dict[str, Any] = {}
    for name, value in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page):
        found.setdefault(name, []).append(unescape(value))
    return found


async def test_a_declaration_form_replaces_only_the_revision_it_showed(api: Api) -> None:
    till, bank = await api.new_monitor(name="Till"), await api.new_monitor(name="Bank")
    row = await lived(api, "Checkout", till.uid)
    path = f"/services/{row.uid}/declaration"
    page = await text_of(await api.ask("editor", "GET", path))
    assert "Saving creates revision 2" in page
    assert 'name="backfill_from"' not in page
    form = {**FIELDS, "act": "save", "revision": "1", "sli": [till.uid, bank.uid]}
    assert (await send(api, path, form)).status_code == 303
    assert [len(one.sli) for one in await revisions(api)] == [1, 2]
    # A form of revision 1 does not overwrite revision 2.
    answer = await send(api, path, {**form, "sli": [bank.uid]})
    assert answer.status_code == 400
    page = await text_of(answer)
    assert "Another user saved a revision." in page
    assert 'name="revision" value="2"' in page
    page = await text_of(await api.ask("viewer", "GET", f"/services/{row.uid}"))
    assert "Bank joins" in page


async def test_dependencies_are_selected_and_a_cycle_is_reported(api: Api) -> None:
    upstream = await lived(api, "Accounts")
    row = await lived(api, "Checkout", depends_on=[upstream.uid])
    path = f"/services/{upstream.uid}/dependencies"
    page = await text_of(await api.ask("editor", "GET", path))
    (generation,) = [
        part[: part.index('"')] for part in page.split('name="generation" value="')[1:]
    ]
    answer = await send(api, path, {"generation": generation, "needs": [row.uid]})
    assert "Dependencies: cycle: accounts -&gt; checkout -&gt; accounts." in await text_of(answer)
    path = f"/services/{row.uid}/dependencies"
    assert (await send(api, path, {"generation": generation})).status_code == 303
    assert await api.rows("select * from service_dependencies") == []
    answer = await send(api, path, {"generation": generation, "needs": [upstream.uid]})
    assert "Another user changed dependencies." in await text_of(answer)


async def test_an_objective_and_its_burn_rules_are_set_together(api: Api) -> None:
    row = await lived(api, "Checkout")
    path = f"/services/{row.uid}/objective"
    page = await text_of(await api.ask("editor", "GET", f"{path}?window=7d"))
    assert 'value="14.4"' in page
    form = {
        "window": "7d",
        "objective": "99,95",
        "burn": "on",
        "threshold-0": "10",
        "long-0": "60",
        "short-0": "5",
        "severity-0": "page",
        "severity-1": "ticket",
    }
    assert (await send(api, path, {**form, "short-0": "1"})).status_code == 400
    assert await api.rows("select * from service_targets") == []
    assert (await send(api, path, form)).status_code == 303
    assert await api.rows("select objective, burn_enabled from service_targets") == [
        (999_500, True)
    ]
    async with api.pool.transaction("look", read_only=True) as tx:
        ((rule,),) = (await select_rules_of_services(tx, [row.key]))[row.key].values()
    assert (rule.rule.threshold, rule.rule.severity) == (Fraction(10), BurnSeverity.PAGE)
    page = await text_of(await api.ask("editor", "GET", path))
    assert 'value="99.95"' in page


async def test_alerting_settings_are_saved_and_described(api: Api) -> None:
    row = await lived(api, "Checkout")
    ladder = await api.new_policy()
    page = await text_of(await api.ask("viewer", "GET", f"/services/{row.uid}"))
    assert "Members page directly" in page
    path = f"/services/{row.uid}/alerting"
    form = {"owns": "on", "down": "on", "degraded": "on", "confirm": "3", "renotify": "600"}
    wrong = await send(api, path, {**form, "confirm": "99"})
    assert "Confirm after: must be 1 to 10." in await text_of(wrong)
    assert (await send(api, path, {**form, "policy": ladder})).status_code == 303
    page = await text_of(await api.ask("viewer", "GET", f"/services/{row.uid}"))
    assert "The service cannot page: no revision in force" in page
    assert "down and degraded" in page
    assert "3 evaluations, one every 30 s" in page
    assert "10\u202fmin" in page
    answer = await send(api, path, {**form, "policy": "x"})
    assert "Escalation policy: not in this project" in await text_of(answer)


async def test_deleting_a_service_needs_a_confirmation(api: Api) -> None:
    row = await lived(api, "Checkout")
    path = f"/services/{row.uid}/delete"
    page = await text_of(await api.ask("editor", "GET", path))
    assert first_line(page) == "Delete Checkout?"
    assert await services(api) == 1
    assert (await send(api, path, {})).status_code == 303
    assert await services(api) == 0


async def test_members_and_policies_in_use_cannot_be_deleted(api: Api) -> None:
    till, ladder = await api.new_monitor(name="Till"), await api.new_policy()
    await lived(api, "Checkout", till.uid, escalation_policy=str(ladder))
    answer = await send(api, f"/monitors/{till.uid}/delete", {"name": "Till"})
    assert answer.status_code == 409
    page = await text_of(answer)
    assert "In use as a dependency" in page
    assert "the service Checkout" in page
    answer = await send(api, f"/escalation-policies/{ladder}/edit", {"act": "delete"})
    assert "In use; remove it from" in await text_of(answer)
