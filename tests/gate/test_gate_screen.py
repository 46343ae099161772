"""The screens of the gate: decisions with their reasons, the forms of policies and overrides, and
the replay of a draft, which writes nothing.
"""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest
import trio
from hypothesis import given
from msgspec.structs import replace

from leadline.http.gate.console.gate_text import because, document_lines, lines, short, used
from leadline.storage.accounts.rules.access import CredentialKind, Membership, Principal, Role
from leadline.storage.alerting.rules.alert_episode import ServiceCondition
from leadline.storage.alerting.rules.paging_delegation import SignalReason
from leadline.storage.core.instant import DAY, SECOND, Instant
from leadline.storage.core.key import ServiceKey
from leadline.storage.engine.partitions import make_partitions
from leadline.storage.engine.pools import Isolation, Tx
from leadline.storage.gate.queries.gate_overrides import select_overrides
from leadline.storage.gate.rows import GateOverrideRow
from leadline.storage.gate.rules.gate import (
    GateClause,
    GateClauseAssignment,
    GateState,
    UnavailableReason,
    UnknownBehavior,
)
from leadline.storage.gate.rules.gate_evidence import (
    Evidence,
    FactRevisions,
    GateFacts,
    GoverningRevision,
    RuleFacts,
    SignalFacts,
    WindowFacts,
    evaluate_policy,
)
from leadline.storage.gate.rules.gate_policy import Document, WindowMode
from leadline.storage.gate.transactions.edit_policy import put_policy
from leadline.storage.gate.transactions.evaluate_gate import evaluate_gate
from leadline.storage.objectives.rules import BurnSeverity, BurnState
from leadline.storage.services.rows import ServiceRow
from tests.conftest import FROZEN_NOW
from tests.gate.test_gate_evidence_rule import documents, governed, some_facts
from tests.support.app.cast import Api

from ..oncall.test_oncall_screen import first_line, text_of
from ..services.test_services_screen import seen
from ..support.worlds.service_history import GOOD, down, lived

POLICY = Document(
    schema_version=2,
    window_mode=WindowMode.ONE,
    window="24h",
    clauses={
        GateClause.BUDGET_EXHAUSTED: GateClauseAssignment.BLOCK,
        GateClause.BUDGET_CONSUMED: GateClauseAssignment.WARN,
        GateClause.PAGE_BURN_FIRING: GateClauseAssignment.IGNORE,
        GateClause.TICKET_BURN_FIRING: GateClauseAssignment.IGNORE,
        GateClause.SERVICE_INCIDENT_OPEN: GateClauseAssignment.IGNORE,
    },
    budget_consumed_percent=50,
    max_seal_lag_seconds=86_400,
    unknown_behavior=UnknownBehavior.BLOCK,
)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
TYPED = {
    "windows": "24h",
    "percent": "50",
    "lag": "86400",
    "unknown": "block",
    **{clause.value: assignment.value for clause, assignment in POLICY.clauses.items()},
}

OVERRIDE = {"act": "override", "source": "service", "revision": "1", "until": "1h"}


def admin(api: Api) -> Principal:
    org = api.orgs["acme"][0]
    return Principal(
        CredentialKind.SESSION, (Membership(org, None, Role.PROJECT_ADMIN),), label="admin"
    )


async def a_service(api: Api, bad_minutes: int = 0, **given_: Any) -> ServiceRow:
    """Creates a service with 24 hours of history, the given bad minutes per hour, and an objective
    of 99 %.
    """
    monitor = await api.new_monitor()
    return await lived(
        api,
        "Shop",
        monitor.uid,
        hours=24,
        was=lambda ago: down(bad_minutes) if bad_minutes else GOOD,
        objective=99.0,
        window="24h",
        **given_,
    )


async def with_policy(api: Api, service: ServiceRow | None, document: Document = POLICY) -> None:
    async with api.pool.transaction("policy") as tx:
        uid = None if service is None else service.uid
        await put_policy(tx, admin(api), api.project, uid, None, document)


async def asked(api: Api, service: ServiceRow) -> UUID:
    await make_partitions(
        api.pool, "gate_decisions", "evaluated_at", from_=FROZEN_NOW, through=FROZEN_NOW
    )
    async with api.pool.transaction("ask", isolation=Isolation.REPEATABLE_READ) as tx:
        return (await evaluate_gate(tx, admin(api), api.project, service.uid)).row.uid


async def sent(api: Api, path: str, who: str = "project_admin", **typed: str) -> Any:
    text = "&".join(f"{name}={value.replace(' ', '+')}" for name, value in typed.items())
    return await api.ask(who, "POST", path, data=text.encode(), headers=FORM)


async def test_a_project_without_decisions_shows_the_command(api: Api) -> None:
    page = await seen(api, f"/projects/{api.project}/gate")
    assert first_line(page) == "No gate decisions yet"
    assert "leadline gate check" in page


async def test_a_service_without_a_policy_is_not_shown_as_allowed(api: Api) -> None:
    service = await a_service(api)
    page = await seen(api, f"/services/{service.uid}/gate")
    assert first_line(page) == "Shop has no gate policy"
    await asked(api, service)
    page = await seen(api, f"/services/{service.uid}/gate")
    assert first_line(page) == "Shop has no gate policy"
    assert "may be released" not in page
    listed = await seen(api, f"/projects/{api.project}/gate")
    assert "no policy is configured" in listed


async def test_a_blocking_decision_shows_its_figures(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service)
    uid = await asked(api, service)
    page = await seen(api, f"/projects/{api.project}/gate/decisions/{uid}")
    assert first_line(page) == "Shop must not be released: BLOCK"
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))
    # A tenth of the day was bad, and a hundredth is allowed.
    assert "The error budget is used up" in text
    assert "2 h 24 min of 14 min 24 s used over 24 hours" in text
    assert "1000% of the error budget is used" in text
    assert "revision 1" in text
    assert "budget_exhausted" in text
    listed = await seen(api, f"/projects/{api.project}/gate?state=BLOCK")
    assert "the error budget is used up, and 1 more" in listed
    assert "No matches" in await seen(api, f"/projects/{api.project}/gate?state=ALLOW")
    assert "must not be released" in first_line(await seen(api, f"/services/{service.uid}/gate"))


async def test_decisions_are_filtered_by_service(api: Api) -> None:
    service = await a_service(api)
    other = await lived(api, "Mill")
    await asked(api, service)
    page = await seen(api, f"/projects/{api.project}/gate?service={service.uid}")
    assert first_line(page) == "Decisions about Shop"
    page = await seen(api, f"/projects/{api.project}/gate?service={other.uid}")
    assert "No matches" in page


async def test_older_decisions_are_on_the_next_page(api: Api) -> None:
    service = await a_service(api)
    for _ in range(51):
        await asked(api, service)
    page = await seen(api, f"/projects/{api.project}/gate")
    older = re.search(r'href="([^"]*before=[^"]*)"', page)
    assert older is not None
    following = await seen(api, older.group(1).replace("&amp;", "&"))
    assert following.count("/gate/decisions/") == 1
    assert page.count("/gate/decisions/") == 50


async def test_a_policy_is_saved_and_refused_by_its_form(api: Api) -> None:
    service = await a_service(api)
    here = f"/services/{service.uid}/gate/policy"
    assert "Save" in await seen(api, here, "editor")
    answer = await sent(api, here, "editor", act="save", revision="", **{**TYPED, "percent": "101"})
    page = await text_of(answer)
    assert answer.status_code == 400
    assert "Used: must be 1–100." in page
    assert 'value="101"' in page
    answer = await sent(api, here, "editor", act="save", revision="", **TYPED)
    assert answer.status_code == 303
    page = await seen(api, f"/services/{service.uid}/gate")
    assert "revision 1 of the service" in page
    answer = await sent(api, here, "editor", act="save", revision="", **{**TYPED, "percent": "60"})
    assert answer.status_code == 400
    assert "Another user changed the policy" in await text_of(answer)
    answer = await sent(api, here, "editor", act="delete", revision="1")
    assert answer.status_code == 303
    assert "has no gate policy" in await seen(api, f"/services/{service.uid}/gate")


async def test_a_service_inherits_the_project_policy_until_it_has_its_own(api: Api) -> None:
    service = await a_service(api)
    here = f"/projects/{api.project}/gate/policy"
    answer = await sent(api, here, "editor", act="save", revision="", **TYPED)
    assert answer.status_code == 303
    assert "revision 1 of the project" in await seen(api, f"/services/{service.uid}/gate")
    form = await seen(api, f"/services/{service.uid}/gate/policy", "editor")
    assert "Inherited from the project" in form


async def counted(api: Api) -> list[Any]:
    tables = ("gate_policies", "gate_overrides", "gate_decisions", "audit_entries")
    return [await api.rows(f"select count(*) from {table}") for table in tables]


async def test_a_draft_is_replayed_without_a_write(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service)
    await asked(api, service)
    before = await counted(api)
    here = f"/services/{service.uid}/gate/policy"
    typed = {**TYPED, "budget_exhausted": "ignore", "budget_consumed": "ignore"}
    answer = await sent(api, here, "editor", act="try", revision="1", **typed)
    page = await text_of(answer)
    assert answer.status_code == 200
    assert "Draft policy, replayed" in page
    assert "1 of 1 differ" in page
    assert "1 BLOCK become ALLOW" in page
    assert await counted(api) == before


async def test_only_admins_create_and_revoke_overrides(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service)
    here = f"/services/{service.uid}/gate"
    assert "Override BLOCK" not in await seen(api, here, "editor")
    assert "Override BLOCK" in await seen(api, here, "project_admin")
    given_ = OVERRIDE
    assert (await sent(api, here, "editor", reason="a fix", **given_)).status_code == 403
    refused = await sent(api, here, reason="", **given_)
    assert refused.status_code == 400
    assert "Reason must be 1–500 characters." in await text_of(refused)
    assert (await sent(api, here, reason="the fix", **given_)).status_code == 303
    page = await seen(api, here, "project_admin")
    assert "Override by" in page
    uid = await asked(api, service)
    decision = await seen(api, f"/projects/{api.project}/gate/decisions/{uid}")
    assert first_line(decision) == "Shop may be released by an override: ALLOW"
    assert "BLOCK" in decision
    assert "the fix" in decision
    override = re.search(r'name="override" value="([^"]+)"', page)
    assert override is not None
    twice = await sent(api, here, reason="again", **given_)
    assert "An override is already active" in await text_of(twice)
    answer = await sent(api, here, act="end", override=override.group(1))
    assert answer.status_code == 303
    assert "revoked" in await seen(api, here)


@given(documents(), some_facts())
def test_every_finding_has_one_line(document: Document, facts: GateFacts) -> None:
    evidence = Evidence(policy=governed(document), facts=facts, override=None)
    said = evaluate_policy(evidence)
    told = lines(evidence)
    counted_codes = {
        r.code for r in said.reasons if r.assignment is not GateClauseAssignment.IGNORE
    }
    assert {line.code for line in told if line.matches} == counted_codes
    for line in told:
        assert "None" not in f"{line.text} {line.note}"
        assert line.text
        if line.mark == "up":
            assert not line.matches
    if said.state is GateState.ALLOW:
        assert because(said.reasons) == "no clause matched"
    assert len(document_lines(document)) == 8


def test_every_code_has_a_text() -> None:
    codes = [*(clause.value for clause in GateClause), *(why.value for why in UnavailableReason)]
    for code in [*codes, "not_configured"]:
        assert short(code) != code


async def test_unknown_and_foreign_ids_are_not_found(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service)
    uid = await asked(api, service)
    mill = api.projects["acme/mill"][1]
    elsewhere: Mapping[str, str] = {
        "another project's": f"/projects/{mill}/gate/decisions/{uid}",
        "of no service": f"/projects/{api.project}/gate?service={uid}",
        "none": f"/projects/{api.project}/gate/decisions/{service.uid}",
    }
    for what, path in elsewhere.items():
        assert (await api.ask("org_admin", "GET", path)).status_code == 404, what


async def test_a_day_is_replayed_from_sealed_minutes(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    async with api.pool.transaction("policy") as tx:
        await put_policy(tx, admin(api), api.project, service.uid, None, POLICY)
        began = Instant(FROZEN_NOW - 2 * DAY)
        await tx.execute("update gate_policies set began_at = at(%(at)s)", at=began)
    page = await seen(api, f"/services/{service.uid}/gate")
    plot = page[page.index("Gate replay") :]
    assert "BLOCK from" in plot
    assert "the error budget is used up" in plot
    # The state before the start of the service is unknown.
    assert "UNKNOWN from" in plot


OLDER = Document(
    schema_version=1,
    window_mode=WindowMode.ONE,
    window="24h",
    clauses=POLICY.clauses,
    budget_consumed_percent=50,
    max_seal_lag_seconds=86_400,
    unknown_behavior=UnknownBehavior.BLOCK,
)


async def test_an_unchanged_policy_form_changes_nothing(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service, OLDER)
    gate = f"/services/{service.uid}/gate"
    override = {**OVERRIDE, "reason": "the fix"}
    assert (await sent(api, gate, **override)).status_code == 303
    saved = await sent(api, f"{gate}/policy", "editor", act="save", revision="1", **TYPED)
    assert saved.status_code == 303
    page = await seen(api, gate)
    assert "revision 1 of the service" in page
    assert "Override by" in page


async def test_the_form_upgrades_an_older_policy_to_all_windows(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service, OLDER)
    gate = f"/services/{service.uid}/gate"
    typed = {**TYPED, "windows": "all"}
    saved = await sent(api, f"{gate}/policy", "editor", act="save", revision="1", **typed)
    assert saved.status_code == 303
    assert "revision 2 of the service" in await seen(api, gate)


async def test_a_refused_deletion_shows_the_current_policy(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service)
    here = f"/services/{service.uid}/gate/policy"
    later = {**TYPED, "percent": "60"}
    assert (await sent(api, here, "editor", act="save", revision="1", **later)).status_code == 303
    refused = await sent(api, here, "editor", act="delete", revision="1")
    page = await text_of(refused)
    assert refused.status_code == 400
    assert 'value="60"' in page
    assert 'name="revision" value="1"' not in page
    assert "Your input is kept" not in page


async def test_a_concurrent_save_can_be_overwritten_after_review(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service)
    here = f"/services/{service.uid}/gate/policy"
    later = {**TYPED, "percent": "60"}
    assert (await sent(api, here, "editor", act="save", revision="1", **later)).status_code == 303
    mine = {**TYPED, "percent": "70"}
    refused = await text_of(await sent(api, here, "editor", act="save", revision="1", **mine))
    assert "Another user changed the policy" in refused
    assert 'value="70"' in refused
    revision = re.search(r'name="revision" value="(\d+)"', refused)
    assert revision is not None
    again = await sent(api, here, "editor", act="save", revision=revision.group(1), **mine)
    assert again.status_code == 303


async def test_a_reason_can_have_several_lines(api: Api) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service)
    here = f"/services/{service.uid}/gate"
    given_ = OVERRIDE
    assert (await sent(api, here, reason="one%0D%0Atwo", **given_)).status_code == 303
    (found,) = await api.rows("select reason from gate_overrides")
    assert found[0] == "one\ntwo"


async def test_a_malformed_revision_is_a_client_error(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service)
    given_ = {**OVERRIDE, "revision": "%C2%B2", "reason": "x"}
    answer = await sent(api, f"/services/{service.uid}/gate", **given_)
    assert answer.status_code == 400


def test_the_first_line_is_the_reason_of_the_decision() -> None:
    """An unknown clause next to a blocking clause is not the reason of BLOCK."""
    facts = GateFacts(
        at=FROZEN_NOW,
        governing=None,
        sealed_through=None,
        windows=[],
        fact_revisions=FactRevisions(0, None, None, ""),
        seen=None,
        live=SignalFacts(armed=False, reason=None, evaluated_at=None, lease_until=None),
        burn=SignalFacts(armed=False, reason=None, evaluated_at=None, lease_until=None),
        open_incidents=[UUID(int=1)],
    )
    blocking = replace(POLICY, clauses=dict.fromkeys(GateClause, GateClauseAssignment.BLOCK))
    said = evaluate_policy(Evidence(policy=governed(blocking), facts=facts, override=None))
    assert said.state is GateState.BLOCK
    assert because(said.reasons).startswith("an incident is open")


async def test_a_rate_limited_draft_keeps_its_input(api: Api) -> None:
    service = await a_service(api)
    here = f"/services/{service.uid}/gate/policy"
    typed = {**TYPED, "percent": "37"}
    for _ in range(10):
        answer = await sent(api, here, "editor", act="try", revision="", **typed)
        assert answer.status_code == 200
    answer = await sent(api, here, "editor", act="try", revision="", **typed)
    assert answer.status_code == 429
    assert answer.headers["Retry-After"] == "6"
    assert 'value="37"' in await text_of(answer)


async def test_a_screen_is_read_in_one_snapshot(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, service)
    here = f"/services/{service.uid}/gate"
    override = {**OVERRIDE, "reason": "the fix"}
    assert (await sent(api, here, **override)).status_code == 303

    async def edit() -> None:
        edited = replace(POLICY, budget_consumed_percent=60)
        async with api.pool.transaction("edit") as tx:
            await put_policy(tx, admin(api), api.project, service.uid, 1, edited)

    async def after_an_edit(tx: Tx, key: ServiceKey) -> list[GateOverrideRow]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(edit)
        return await select_overrides(tx, key)

    with monkeypatch.context() as patched:
        patched.setattr("leadline.http.gate.console.gate_screen.select_overrides", after_an_edit)
        page = await seen(api, here)
    assert "revision 1 of the service" in page
    assert "ended by a policy change" not in page
    page = await seen(api, here)
    assert "revision 2 of the service" in page
    assert "ended by a policy change" in page


def lived_facts(**given_: Any) -> GateFacts:
    """Facts of a service for which every input is known and good."""
    rule = RuleFacts(
        key="24h page 1h/5m 14.4",
        severity=BurnSeverity.PAGE,
        firing=False,
        last_verdict=BurnState.CLEAR,
        evaluated_at=FROZEN_NOW,
        lease_until=None,
    )
    window = WindowFacts(
        window="24h",
        target=UUID(int=1),
        objective=999_900,
        objective_updated_at=FROZEN_NOW,
        from_at=Instant(FROZEN_NOW - DAY),
        to_at=FROZEN_NOW,
        good_us=DAY,
        bad_us=0,
        unknown_us=0,
        excluded_us=0,
        withheld=None,
        repair_since=None,
        burn_enabled=True,
        rules=[rule, replace(rule, severity=BurnSeverity.TICKET)],
    )
    window = replace(window, **given_.pop("window", {}))
    signal = SignalFacts(armed=True, reason=None, evaluated_at=FROZEN_NOW, lease_until=None)
    facts = GateFacts(
        at=FROZEN_NOW,
        governing=GoverningRevision(UUID(int=1), 1),
        sealed_through=FROZEN_NOW,
        windows=[window],
        fact_revisions=FactRevisions(0, None, None, ""),
        seen=ServiceCondition.HEALTHY,
        live=signal,
        burn=signal,
        open_incidents=[],
    )
    return replace(facts, **given_)


def notes_of(facts: GateFacts) -> dict[str, str]:
    evidence = Evidence(policy=governed(POLICY), facts=facts, override=None)
    return {line.code: line.note for line in lines(evidence) if line.mark != "up"}


@pytest.mark.parametrize("reason", [None, SignalReason.NEVER_EVALUATED])
def test_a_pending_evaluation_has_its_own_text(
    reason: SignalReason | None,
) -> None:
    live = SignalFacts(armed=reason is None, reason=reason, evaluated_at=None, lease_until=None)
    assert notes_of(lived_facts(live=live, seen=None)) == {
        "never_evaluated": "The service was not evaluated yet."
    }


@pytest.mark.parametrize(
    "reason",
    [
        SignalReason.NO_OWNING_SERVICE,
        SignalReason.POLICY_PAGES_NOTHING,
        SignalReason.NO_ENABLED_TARGET,
        SignalReason.UNROUTABLE,
    ],
)
def test_an_alerting_that_cannot_page_is_stated(reason: SignalReason) -> None:
    """It can open an incident without a page, so the text does not deny that."""
    live = replace(lived_facts().live, armed=False, reason=reason)
    assert notes_of(lived_facts(live=live)) == {
        "never_evaluated": "The alerting of the service cannot page."
    }
    uid = UUID("019a0000-0000-7000-8000-000000000001")
    assert "never_evaluated" not in notes_of(lived_facts(live=live, open_incidents=[uid]))


def test_a_pending_burn_rule_is_not_shown_as_missing() -> None:
    rule = lived_facts().windows[0].rules[0]
    unseen = replace(rule, evaluated_at=None, last_verdict=None)
    rules = [unseen, replace(unseen, severity=BurnSeverity.TICKET)]
    assert notes_of(lived_facts(window={"rules": rules})) == {
        "never_evaluated": "The burn rule over 24 hours was not evaluated yet."
    }


def test_an_unknown_evaluation_is_not_shown_as_missing() -> None:
    assert notes_of(lived_facts(seen=ServiceCondition.UNKNOWN)) == {
        "facts_stale": "The last evaluation failed."
    }


def test_the_budget_is_equal_to_the_second_on_every_screen() -> None:
    """The values are rounded with integers, like those of the service screen."""
    for objective in range(999_001, 1_000_000, 7):
        measured = 10_000 * 100 * SECOND
        bad = (1_000_000 - objective) * SECOND
        window = replace(
            lived_facts().windows[0], objective=objective, bad_us=bad, good_us=measured - bad
        )
        left, right = used(window).removesuffix(" used").split(" of ")
        assert left == right


async def test_an_inert_override_is_not_shown_as_active(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, None)
    here = f"/services/{service.uid}/gate"
    override = {**OVERRIDE, "source": "project", "reason": "the fix"}
    assert (await sent(api, here, **override)).status_code == 303
    await with_policy(api, service)
    page = await seen(api, here, "project_admin")
    assert "another policy is in force" in page
    uid = re.search(r'name="override" value="([^"]+)"', page)
    assert uid is not None
    assert (await sent(api, here, act="end", override=uid.group(1))).status_code == 303
    (found,) = await api.rows(
        "select target from audit_entries where action = 'gate_override.revoke'"
    )
    assert found[0].endswith(" inert->revoked")


async def test_an_old_decision_is_not_shown_as_current(api: Api) -> None:
    service = await a_service(api)
    await with_policy(api, service)
    await asked(api, service)
    here = f"/services/{service.uid}/gate"
    assert first_line(await seen(api, here)) == "Last decision: Shop may be released: ALLOW"
    answer = await sent(api, f"{here}/policy", "editor", act="delete", revision="1")
    assert answer.status_code == 303
    assert first_line(await seen(api, here)) == "Shop has no gate policy"


async def test_an_override_is_for_the_policy_that_the_form_showed(api: Api) -> None:
    """The first revision of a service's own policy is not that of its project's."""
    service = await a_service(api, bad_minutes=6)
    await with_policy(api, None)
    here = f"/services/{service.uid}/gate"
    shown = await seen(api, here, "project_admin")
    typed = dict(re.findall(r'type="hidden" name="(\w+)" value="(\w*)"', shown))
    await with_policy(api, service)
    answer = await sent(api, here, **typed, until="1h", reason="the fix")
    assert answer.status_code == 400
    assert "Another user changed the policy" in await text_of(answer)
    assert await api.rows("select 1 from gate_overrides") == []


def test_a_watermark_in_the_future_is_reported_as_a_clock_error() -> None:
    facts = lived_facts(sealed_through=Instant(FROZEN_NOW + DAY))
    assert notes_of(facts) == {"seal_stale": "Sealed data ends after the query: check the clocks."}
