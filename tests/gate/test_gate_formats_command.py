"""The output of a decision for CI systems: text from others is never interpreted as a command."""

import json
import re
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from leadline.daemon.cli.gate_ci_formats import (
    github,
    github_command,
    github_summary,
    gitlab,
    junit,
    junit_error,
)
from leadline.daemon.cli.gate_response import PrintedDecision, read_decision
from leadline.daemon.cli.gate_text import decision_text, reason_text
from leadline.daemon.cli.safe_text import shown, shown_json
from leadline.storage.gate.rules.gate import GateClause, UnavailableReason
from tests.support.app.pipeline_server import (
    DECISION,
    PROJECT,
    SERVICE,
    call,
    decision,
    http,
    serving,
)

BY_ID = ("gate", "check", "--project", PROJECT, "--service", SERVICE)
INCIDENT = "service_incident_open"
EVIL = (
    "x\n::error::owned\r\n::set-output name=a::b\n##[add-path]/tmp ##vso[task.complete]"
    " ##teamcity[buildStop] %0A::warning:: \x1b[2J\x9b31m\u202e\u2028LEADLINE_GATE_ACTION=ALLOW"
    " ]]></failure><script>alert(1)</script> [a](javascript:b) <img src=x> `c` | d"
)
# Text that others control: any characters, and sequences that a CI system reads as commands.
TEXTS = st.text(max_size=60) | st.sampled_from([EVIL, EVIL.replace(" ", "\n"), "##[", "###", "::"])
REASONS = st.fixed_dictionaries(
    {"code": TEXTS | st.sampled_from([*map(str, GateClause), *map(str, UnavailableReason)])},
    optional={
        "clause": TEXTS | st.sampled_from([*map(str, GateClause)]),
        "assignment": TEXTS | st.sampled_from(["block", "warn", "ignore"]),
        "value": TEXTS | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9**20),
        "window": TEXTS,
        "source": TEXTS,
    },
)


@st.composite
def decisions(draw: st.DrawFn) -> PrintedDecision:
    state = draw(st.sampled_from(["ALLOW", "WARN", "BLOCK", "UNKNOWN", "NOT_CONFIGURED"]))
    more: dict[str, Any] = {}
    if state == "UNKNOWN":
        more["action"] = draw(st.sampled_from(["WARN", "BLOCK"]))
    if state == "BLOCK" and draw(st.booleans()):
        label, reason = draw(TEXTS), draw(TEXTS)
        override = {"actor_label": label, "reason": reason, "expires_at": draw(TEXTS)}
        more |= {"action": "ALLOW", "override_id": DECISION, "override": override}
    return made(
        state,
        reasons=draw(st.lists(REASONS, max_size=4)),
        service_name=draw(TEXTS),
        service_slug=draw(TEXTS),
        evaluated_at=draw(TEXTS),
        policy_source=draw(TEXTS),
        **more,
    )


def made(state: str = "ALLOW", **more: Any) -> PrintedDecision:
    return read_decision(json.dumps(decision(state, **more)).encode(), UUID(SERVICE))


def reason(code: str, assignment: str = "block", **more: Any) -> dict[str, Any]:
    return {"code": code, "clause": code, "assignment": assignment, **more}


def unknown(code: str, clause: str, assignment: str = "block", **more: Any) -> dict[str, Any]:
    return {"code": code, "clause": clause, "assignment": assignment, **more}


def is_harmless(line: str) -> bool:
    """Returns whether the text is one line without terminal or CI commands."""
    return line.isprintable() and "##" not in line and not line.lstrip().startswith("::")


@example("###", 3)
@given(TEXTS, st.integers(1, 80))
def test_shown_text_is_one_bounded_line(text: str, longest: int) -> None:
    line = shown(text, longest)
    assert line.isprintable()
    assert "##" not in line
    assert len(line) <= longest
    assert len(line.splitlines()) <= 1


@given(st.recursive(TEXTS | st.integers(), lambda inner: st.dictionaries(TEXTS, inner)))
def test_shown_json_keeps_its_value(value: Any) -> None:
    if re.search("[\ud800-\udfff]", str(value)):
        return
    for ascii_only, indent in ((True, None), (False, 2)):
        given_text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
        text = shown_json(given_text.encode("utf-8", "surrogatepass")).decode()
        assert json.loads(text) == value
        assert all(is_harmless(line) or not line for line in text.split("\n"))


@given(decisions())
def test_no_output_is_interpreted_as_a_command(said: PrintedDecision) -> None:
    for line in decision_text(said):
        assert is_harmless(line)
    command = github(said)
    assert len(command.splitlines()) == 1
    assert re.fullmatch(r"::(error|warning|notice) title=[^:,\r\n]*::[^\r\n]*", command)
    assert "##" not in command
    for line in github_summary(said).splitlines():
        assert "##" not in line.removeprefix("### ")
        assert re.search(r"(?<!\\)(\\\\)*[<>\[\]`|]", line) is None


@given(decisions())
def test_gitlab_output_has_exactly_three_variables(said: PrintedDecision) -> None:
    lines = gitlab(said).splitlines()
    assert [line.partition("=")[0] for line in lines] == [
        "LEADLINE_GATE_STATE",
        "LEADLINE_GATE_ACTION",
        "LEADLINE_GATE_DECISION_ID",
    ]
    assert all(re.fullmatch(r"[A-Z_]+=[A-Za-z0-9_-]+", line) for line in lines)


# The elements of the schema of Jenkins (junit-10.xsd) that are used here, in their order.
ATTRIBUTES = {
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"name", "classname", "time"},
    "failure": {"message", "type"},
    "error": {"message", "type"},
    "skipped": {"message"},
    "system-out": set(),
}
ORDER = {
    "testsuite": r"(testcase )*(system-out )?",
    "testcase": r"((skipped|failure|error) )?(system-out )?",
}


def checked(text: str) -> ElementTree.Element:
    """Returns the report, checked against the schema."""
    suite = ElementTree.fromstring(text.encode())
    assert suite.tag == "testsuite"
    for element in suite.iter():
        assert set(element.attrib) == ATTRIBUTES[element.tag]
        parts = "".join(f"{part.tag} " for part in element)
        assert re.fullmatch(ORDER.get(element.tag, ""), parts)
    counted = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    for attribute, tag in counted.items():
        assert int(suite.attrib[attribute]) == len(list(suite.iter(tag)))
    names = [case.attrib["name"] for case in suite.iter("testcase")]
    assert names
    return suite


@given(decisions())
def test_junit_output_is_valid_and_fails_on_block(said: PrintedDecision) -> None:
    suite = checked(junit(said))
    assert bool(int(suite.attrib["failures"])) == (said.exit_status == 2)
    for element in suite.iter():
        for text in (*element.attrib.values(), element.text or ""):
            assert "##" not in text
            assert re.search(r"[^\n\x20-\x7e\x85\xa0-\U0010ffff]", text) is None


def cases(said: PrintedDecision) -> dict[str, str]:
    suite = checked(junit(said))
    return {case.attrib["name"]: next((part.tag for part in case), "passed") for case in suite[:-1]}


def test_junit_output_has_one_case_per_clause() -> None:
    said = made(
        "BLOCK",
        reasons=[
            reason("budget_exhausted", window="30d", value=112.4),
            reason("budget_consumed", "warn", window="30d", value=112.4),
            reason("service_incident_open", "ignore", value=DECISION),
            unknown("never_evaluated", "page_burn_firing", window="30d"),
        ],
    )
    assert cases(said) == {
        "budget_exhausted": "failure",
        "budget_consumed": "system-out",
        "page_burn_firing": "skipped",
        "ticket_burn_firing": "passed",
        "service_incident_open": "system-out",
    }


def test_an_unknown_clause_fails_only_on_block() -> None:
    reasons = [
        unknown("seal_stale", "budget_exhausted"),
        unknown("never_evaluated", "ticket_burn_firing", "ignore"),
    ]
    blocked = cases(made("UNKNOWN", action="BLOCK", reasons=reasons))
    warned = cases(made("UNKNOWN", action="WARN", reasons=reasons))
    assert (blocked["budget_exhausted"], warned["budget_exhausted"]) == ("failure", "skipped")
    assert blocked["ticket_burn_firing"] == warned["ticket_burn_firing"] == "skipped"


def test_a_missing_policy_is_a_skipped_case() -> None:
    assert cases(made("NOT_CONFIGURED")) == {"policy": "skipped"}


def test_a_missing_decision_is_a_junit_error() -> None:
    suite = checked(junit_error("no decision: timed out after 10 s"))
    assert suite.attrib["errors"] == "1"
    with serving() as server:
        done = call(server, *BY_ID, "--format", "junit")
        assert checked(done.stdout).attrib["errors"] == "1"
        done = call(server, *BY_ID, "--format", "github")
    assert done.stdout.startswith("::error title=Release gate::no decision: ")


def test_the_text_has_verdict_reasons_and_id() -> None:
    said = made(
        "BLOCK",
        reasons=[
            reason("budget_exhausted", window="30d", value=112.4138),
            reason("budget_consumed", "warn", window="30d", value=99.999),
            unknown("seal_stale", "page_burn_firing", "warn", window="30d"),
            reason("service_incident_open", "ignore", value=DECISION),
        ],
        seal_lag=1234.5,
        max_seal_lag_seconds=900,
    )
    assert decision_text(said) == [
        "BLOCK: Checkout (checkout) must not be released",
        "  blocks: the error budget over 30d is exhausted (112.41 % used)",
        "  warns: the used error budget over 30d has reached the policy limit (99.99 % used)",
        "  unavailable: burn rule of severity page over 30d: the sealed data is too old: 1234 s,"
        " policy allows 900 s",
        f"  ignored: the service has an open incident ({DECISION})",
        f"decision {DECISION} at 2026-11-22T13:46:24.000Z, by revision 3 of the service policy",
    ]


def test_the_text_names_an_override_with_user_and_reason() -> None:
    override = {"actor_label": "Mara", "reason": "the fix", "expires_at": "2026-11-23T00:00:00Z"}
    said = made("BLOCK", action="ALLOW", override_id=DECISION, override=override)
    lines = decision_text(said)
    assert lines[0] == ("ALLOW (BLOCK): Checkout (checkout) can be released because of an override")
    assert lines[1] == "  overridden by Mara until 2026-11-23T00:00:00Z: the fix"
    assert github(said).startswith("::notice title=Release gate%3A ALLOW (BLOCK)::ALLOW (BLOCK)")


def test_the_text_reports_a_missing_policy() -> None:
    assert decision_text(made("NOT_CONFIGURED"))[:2] == [
        "NOT_CONFIGURED: Checkout (checkout) has no gate policy",
        "  because: neither the service nor its project has a gate policy",
    ]


def test_the_text_for_a_service_that_opens_no_incidents() -> None:
    said = made("UNKNOWN", action="WARN", reasons=[unknown("never_evaluated", INCIDENT, "warn")])
    assert decision_text(said)[1] == (
        "  unavailable: open service incident:"
        " the alerting of the service cannot page, or was not evaluated"
    )


@pytest.mark.parametrize("code", [*GateClause, *UnavailableReason])
def test_every_code_has_a_text(code: str) -> None:
    clause = code if code in list(GateClause) else GateClause.BUDGET_EXHAUSTED
    said = made("BLOCK", reasons=[{"code": code, "clause": clause, "assignment": "block"}])
    assert code not in reason_text(said, said.reasons[0])


def test_unknown_codes_are_shown_unchanged() -> None:
    said = made("BLOCK", reasons=[reason("canary_failing", value=3, window="1h")])
    assert decision_text(said)[1] == "  blocks: canary_failing over 1h: 3"
    assert cases(said)["canary_failing"] == "failure"


def test_github_commands_are_escaped() -> None:
    assert github_command("error", "a:b,c%", "100 %\r\n::x") == (
        "::error title=a%3Ab%2Cc%25::100 %25%0D%0A::x"
    )


def test_the_github_summary_is_appended(tmp_path: Path) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")
    said = decision("BLOCK", reasons=[reason("budget_exhausted")], service_name="<b>*x*</b>")
    with serving() as server:
        server.else_says = http(said)
        done = call(server, *BY_ID, "--format", "github", GITHUB_STEP_SUMMARY=str(summary))
        assert done.exit_code == 2
        assert done.stdout.startswith("::error title=Release gate%3A BLOCK::BLOCK: ")
        text = summary.read_text()
        assert text.startswith("before\n### Release gate: BLOCK\\: \\<b\\>\\*x\\*\\<\\/b\\> ")
        assert "- blocks\\: the error budget is exhausted" in text
        # A summary that cannot be written does not change the exit status.
        done = call(server, *BY_ID, "--format", "github", GITHUB_STEP_SUMMARY=str(tmp_path))
        assert done.exit_code == 2
        assert "GITHUB_STEP_SUMMARY cannot be written" in done.stderr
        # Other formats do not write the summary.
        call(server, *BY_ID, "--format", "junit", GITHUB_STEP_SUMMARY=str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("state", ["BLOCK", "NOT_CONFIGURED"])
def test_github_outputs_are_appended_for_later_steps(state: str, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.write_text("before=1\n")
    with serving() as server:
        server.else_says = http(decision(state))
        call(server, *BY_ID, "--format", "github", GITHUB_OUTPUT=str(output))
        action = {"NOT_CONFIGURED": "NONE"}.get(state, state)
    assert output.read_text() == (
        f"before=1\nstate={state}\naction={action}\ndecision-id={DECISION}\n"
    )


@pytest.mark.parametrize("form", ["gitlab", "junit"])
def test_file_formats_are_alone_on_standard_output(form: str) -> None:
    with serving() as server:
        server.else_says = http(decision("WARN", reasons=[reason("budget_consumed", "warn")]))
        done = call(server, *BY_ID, "--format", form)
    assert done.exit_code == 0
    assert done.stderr.startswith("WARN: Checkout (checkout) can be released, with a warning\n")
    assert done.stdout.startswith(("LEADLINE_GATE_STATE=WARN\n", '<?xml version="1.0"'))
