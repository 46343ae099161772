"""Gate decisions in the formats of build servers: GitHub commands, GitLab variables, JUnit XML.

Text from the server is escaped in each format.
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
# Value for a missing action, since readers of these files need one.
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
    """Returns a workflow command, which GitHub shows as an annotation of the run."""
    title = f"{TITLE}: {action_word(decision)}"
    return github_command(_COMMANDS[decision.action], title, "\n".join(decision_text(decision)))


def github_command(name: str, title: str, message: str) -> str:
    """Returns a workflow command on one line; line ends of the message are escaped."""
    title = _github_data(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{name} title={title}::{_github_data(message)}"


def _github_data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def github_summary(decision: PrintedDecision) -> str:
    """Returns Markdown for the summary of the run."""
    lines = [f"### {TITLE}: {_markdown(headline(decision))}", ""]
    lines += [f"- {_markdown(line)}" for line in reasons_text(decision)]
    return "\n".join([*lines, "", _markdown(footing(decision)), "", ""])


def github_outputs(decision: PrintedDecision) -> str:
    """Returns the outputs for later steps: fixed words and an id, no text from users."""
    return "".join(
        (
            f"state={decision.state}\n",
            f"action={decision.action or NO_ACTION}\n",
            f"decision-id={decision.decision_id}\n",
        )
    )


def _markdown(text: str) -> str:
    """Escapes all Markdown punctuation."""
    return _PUNCTUATION.sub(r"\\\1", text)


def gitlab(decision: PrintedDecision) -> str:
    """Returns variables for later jobs in the format of `artifacts:reports:dotenv`.

    The values are fixed words and an id, no text from users."""
    return "\n".join(
        (
            f"LEADLINE_GATE_STATE={decision.state}",
            f"LEADLINE_GATE_ACTION={decision.action or NO_ACTION}",
            f"LEADLINE_GATE_DECISION_ID={decision.decision_id}",
        )
    )


def junit(decision: PrintedDecision) -> str:
    """Returns a test suite with a test case for each clause.

    A case fails if the decision blocks because of its clause. An unavailable clause is skipped, and
    so is the only case of a service without a policy."""
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
    """Returns a test suite with one case in error, for a command without a decision."""
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
    """Returns the failed case of a BLOCK that no known reason explains."""
    case = _case("decision")
    _put(ElementTree.SubElement(case, "failure"), headline(decision))
    return case


def _line(decision: PrintedDecision, reason: PrintedReason) -> str:
    return f"{weight(reason)}: {reason_text(decision, reason)}"


def _case(name: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", classname=_SUITE, name=name, time="0")


def _put(element: ElementTree.Element, text: str) -> None:
    """Sets text, type and message. The message is the first line, which lists show."""
    element.set("message", text.partition("\n")[0])
    element.set("type", TITLE)
    element.text = text


def _written(cases: list[ElementTree.Element], decision: PrintedDecision | None) -> str:
    """Returns the document with one suite. The JUnit schema fixes the order of its elements."""
    name = _SUITE if decision is None else f"{TITLE} of {named(decision)}"
    suite = ElementTree.Element("testsuite", name=name, tests=str(len(cases)), time="0")
    for count, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(count, str(sum(1 for case in cases if case.find(tag) is not None)))
    suite.extend(cases)
    if decision is not None:
        ElementTree.SubElement(suite, "system-out").text = "\n".join(decision_text(decision))
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, "unicode")
