"""A decision as build servers read it: GitHub's commands, GitLab's variables, JUnit's XML.

What others wrote stays text in all of them.
"""

import re
from enum import StrEnum
from typing import Final
from xml.etree import ElementTree  # written with, never read with

from ...storage.gate.rules.gate import GateAction, GateClause, GateState
from .gate_response import PrintedDecision, PrintedReason
from .gate_text import (
    action_word,
    decides,
    decision_text,
    footing,
    headline,
    named,
    reason_text,
    reasons_text,
    weight,
)
from .safe_text import shown

TITLE: Final = "Release gate"
# What stands for an action where there is none: the reader of such files wants a value.
NO_ACTION: Final = "NONE"

_COMMANDS: Final = {
    GateAction.ALLOW: "notice",
    GateAction.WARN: "warning",
    GateAction.BLOCK: "error",
    None: "warning",
}
_PUNCTUATION: Final = re.compile(r"([!-/:-@\[-`{-~])")
_SUITE: Final = "leadline.gate"


class Format(StrEnum):
    GITHUB = "github"
    GITLAB = "gitlab"
    JUNIT = "junit"


def github(decision: PrintedDecision) -> str:
    """One workflow command, which GitHub shows beside the run."""
    title = f"{TITLE}: {action_word(decision)}"
    return github_command(_COMMANDS[decision.action], title, "\n".join(decision_text(decision)))


def github_command(name: str, title: str, message: str) -> str:
    """A workflow command of one line, whatever the message holds."""
    title = _github_data(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{name} title={title}::{_github_data(message)}"


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_summary(decision: PrintedDecision) -> str:
    """Markdown for the page of the run."""
    lines = [f"### {TITLE}: {_markdown(headline(decision))}", ""]
    lines += [f"- {_markdown(line)}" for line in reasons_text(decision)]
    return "\n".join([*lines, "", _markdown(footing(decision)), "", ""])


def github_outputs(decision: PrintedDecision) -> str:
    """What later steps read of the step: words of our own and an id."""
    return "".join(
        (
            f"state={decision.state}\n",
            f"action={decision.action or NO_ACTION}\n",
            f"decision-id={decision.decision_id}\n",
        )
    )


def _markdown(text: str) -> str:
    """Every mark as itself."""
    return _PUNCTUATION.sub(r"\\\1", text)


def gitlab(decision: PrintedDecision) -> str:
    """Variables for the jobs that follow, as `artifacts:reports:dotenv` reads them: words of our
    own and an id, nothing that anybody wrote."""
    return "\n".join(
        (
            f"LEADLINE_GATE_STATE={decision.state}",
            f"LEADLINE_GATE_ACTION={decision.action or NO_ACTION}",
            f"LEADLINE_GATE_DECISION_ID={decision.decision_id}",
        )
    )


def junit(decision: PrintedDecision) -> str:
    """A test case a clause: failed where the decision blocks for it. One that could not be decided,
    or that was not looked at as there is no policy, is skipped and never passed."""
    if decision.state is GateState.NOT_CONFIGURED:
        case = _case("policy")
        ElementTree.SubElement(case, "skipped", message=headline(decision))
        return _written([case], decision)
    clauses: list[str] = [*GateClause]
    clauses += [r.clause or r.code for r in decision.reasons if (r.clause or r.code) not in clauses]
    cases = [_case_of(decision, clause) for clause in dict.fromkeys(clauses)]
    failed = any(case.find("failure") is not None for case in cases)
    if decision.action is GateAction.BLOCK and not failed:
        cases.append(_blocked(decision))
    return _written(cases, decision)


def junit_error(message: str) -> str:
    """That there is no decision, as a test that could not be run."""
    case = _case("decision")
    _put(ElementTree.SubElement(case, "error"), message)
    return _written([case], None)


def _case_of(decision: PrintedDecision, clause: str) -> ElementTree.Element:
    case = _case(shown(clause, 100))
    reasons = [reason for reason in decision.reasons if (reason.clause or reason.code) == clause]
    heavy = [_line(decision, reason) for reason in reasons if decides(decision, reason)]
    light = [_line(decision, reason) for reason in reasons if not decides(decision, reason)]
    unknown = [_line(decision, reason) for reason in reasons if reason.is_undecided]
    if heavy:
        _put(ElementTree.SubElement(case, "failure"), "\n".join(heavy))
    elif unknown:
        ElementTree.SubElement(case, "skipped", message=unknown[0])
    if light:
        ElementTree.SubElement(case, "system-out").text = "\n".join(light)
    return case


def _blocked(decision: PrintedDecision) -> ElementTree.Element:
    """Where no reason of those that are known explains it, it is blocked all the same."""
    case = _case("decision")
    _put(ElementTree.SubElement(case, "failure"), headline(decision))
    return case


def _line(decision: PrintedDecision, reason: PrintedReason) -> str:
    return f"{weight(reason)}: {reason_text(decision, reason)}"


def _case(name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_SUITE, name=name, time="0")


def _put(element: ElementTree.Element, text: str) -> None:
    """The first line is what lists show."""
    element.set("message", text.partition("\n")[0])
    element.set("type", TITLE)
    element.text = text


def _written(cases: list[ElementTree.Element], decision: PrintedDecision | None) -> str:
    """One suite; the order of a case's parts is the schema's."""
    name = _SUITE if decision is None else f"{TITLE} of {named(decision)}"
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)), time="0")
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(1 for case in cases if case.find(tag) is not None)))
    suite.extend(cases)
    if decision is not None:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(decision_text(decision))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, "unicode")
