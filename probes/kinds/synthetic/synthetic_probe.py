"""Synthetic probe: runs the steps of a scenario in order, each with its assertions.

A later step can use extracted values in its URL, headers and body. They come from a target and may
be session tokens. Therefore they are dropped, like secrets, when a redirect changes the origin.
"""

from dataclasses import dataclass, field
from functools import partial

import msgspec

from ...check.check import Check
from ...check.condition_evaluation import MISSING, ProbeValues
from ...check.failure import LocalFailure, TargetFailure
from ...check.json_document import WHOLE_CHARACTERS_MOST
from ...check.monitor_spec import (
    CREDENTIAL_HEADERS,
    Config,
    Field,
    FieldType,
    MonitorType,
    Spec,
    SpecFault,
    TargetForm,
)
from ...check.observation import Observation
from ...check.phase_timer import Stopwatch
from ...check.result import FailureClass, UnknownReason
from ...check.target import BadTarget, read_url
from ...net.cookies import Jar
from ...net.egress import Egress
from ...net.http_client import REDIRECTS_MOST, HttpRequest, HttpResponse, fetch
from ..condition_worker import evaluate_conditions
from .scenario import (
    SCENARIO_LONGEST,
    Assertion,
    BadScenario,
    Extract,
    ScenarioStep,
    Source,
    read_scenario,
    with_present_names,
)
from .template import CannotFill, Context, Template, Values, fill

VARIABLE_LONGEST = 4_096
BINDINGS = "scenario_secret"


def _rule(_target: str, config: Config) -> list[SpecFault]:
    """Validates the scenario. Each binding needs a setting, and each setting a binding."""
    if config.get("scenario") is None:
        return []
    try:
        scenario = read_scenario(config["scenario"])
    except BadScenario as bad:
        return [SpecFault("config.scenario", str(bad))]
    named = SPEC.bindings_of(config)
    faults = [
        SpecFault(f"config.{BINDINGS}_{name}_ref", "is required, as the scenario uses that binding")
        for name in sorted(scenario.bindings - named.keys())
    ]
    return faults + [
        SpecFault(f"config.{named[name]}", "names a binding that the scenario does not use")
        for name in sorted(named.keys() - scenario.bindings)
    ]


def _declares(config: Config) -> frozenset[str]:
    try:
        return read_scenario(config.get("scenario"), strict=False).bindings
    except BadScenario:
        return frozenset()


SPEC = Spec(
    type=MonitorType.SYNTHETIC,
    help="Sends the requests of a scenario in order; the first that fails is the result.",
    target=TargetForm.NONE,
    fields=(
        Field(
            name="scenario",
            type=FieldType.DOCUMENT,
            help="Steps with their extractions and assertions, as JSON; stored encrypted.",
            required=True,
            secret=True,
            multiline=True,
            longest=SCENARIO_LONGEST,
            canonical=with_present_names,
        ),
    ),
    bindings=BINDINGS,
    declares=_declares,
    placeholders=frozenset({"RESPONSE_TIME", "STATUS", "CONNECTED"}),
    rule=_rule,
)


@dataclass(slots=True)
class _Run:
    secrets: dict[str, str] = field(repr=False)
    variables: dict[str, str] = field(default_factory=dict, repr=False)
    jar: Jar = field(default_factory=Jar)

    @property
    def values(self) -> Values:
        return Values(self.variables, self.secrets)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    try:
        scenario = read_scenario(check.config.get("scenario"), strict=False)
    except BadScenario:
        raise LocalFailure(UnknownReason.BAD_DEFINITION) from None
    run = _Run(_secrets(check, scenario.bindings))
    status = 0
    for step in scenario.steps:
        watch.place = f"step {step.number} {step.host}"
        status = await _take_step(step, run, reach, watch)
    return Observation(ProbeValues(connected=True, status=status), code=status)


def _secrets(check: Check, bindings: frozenset[str]) -> dict[str, str]:
    found = {name: check.secrets.get(f"{BINDINGS}_{name}", "") for name in bindings}
    if not all(found.values()):
        raise LocalFailure(UnknownReason.MISSING_REFERENCE)
    return found


async def _take_step(step: ScenarioStep, run: _Run, reach: Egress, watch: Stopwatch) -> int:
    request = _request(step, run, watch)
    began_ms = watch.elapsed_ms()
    response = await fetch(reach, request, watch)
    took_ms = watch.elapsed_ms() - began_ms
    if request.keep_body and not response.whole:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
    facts = ProbeValues(
        connected=True,
        status=response.status,
        response_time_ms=took_ms,
        body=response.text if request.keep_body else None,
        headers=response.headers,
    )
    if not step.asserts_status and not 200 <= response.status <= 299:
        raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
    for assertion in step.assertions:
        if not await _holds(assertion, run, facts, watch, step, reach):
            watch.place = f"step {step.number} {assertion.kind} {step.host}"
            raise TargetFailure(FailureClass.CONDITION_FAILED, response.status)
    if facts.exhausted:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE, response.status)
    for extract in step.extracts:
        value = await _extracted(extract, facts, response, reach)
        if value is None:
            watch.place = f"step {step.number} extract {step.host}"
            too_large, missing = FailureClass.RESPONSE_TOO_LARGE, FailureClass.CONDITION_FAILED
            raise TargetFailure(too_large if facts.exhausted else missing, response.status)
        run.variables[extract.var] = value
    return response.status


async def _holds(
    assertion: Assertion,
    run: _Run,
    facts: ProbeValues,
    watch: Stopwatch,
    step: ScenarioStep,
    reach: Egress,
) -> bool:
    value = _fill(assertion.value, run, Context.TEXT, step, str(assertion.kind), watch)
    held = await evaluate_conditions([assertion.condition(value)], facts, reach)
    return held is not assertion.negated


async def _extracted(
    extract: Extract, facts: ProbeValues, response: HttpResponse, reach: Egress
) -> str | None:
    """Returns the extracted value, or None if it is missing, null or too large for a variable.

    None also if the value would take too long to read, after which `facts` are exhausted.
    """
    match extract.source:
        case Source.STATUS:
            return str(response.status)
        case Source.HEADER:
            found: object = response.headers.get(extract.header)
        case Source.BODY:
            found = facts.body
        case _ if len(facts.body or "") > WHOLE_CHARACTERS_MOST:
            found = await reach.in_thread_alone(partial(facts.in_body, extract.path))
        case _:
            found = facts.in_body(extract.path)
    if found is None or found is MISSING:
        return None
    text = found if isinstance(found, str) else msgspec.json.encode(found).decode()
    return text if len(text) <= VARIABLE_LONGEST else None


def _request(step: ScenarioStep, run: _Run, watch: Stopwatch) -> HttpRequest:
    try:
        url = read_url(_fill(step.url, run, Context.URL, step, "url", watch))
    except BadTarget:
        watch.place = f"step {step.number} url {step.host}"
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
    headers = [
        (name, _fill(template, run, Context.HEADER, step, "headers", watch))
        for name, template in step.headers
    ]
    body = ""
    if step.body is not None:
        body = _fill(step.body, run, step.body_context, step, "body", watch)
        if step.body_context is Context.JSON and not _names(step, "content-type"):
            headers.append(("content-type", "application/json"))
    filled = {name.lower() for name, template in step.headers if template.placeholders}
    return HttpRequest(
        method=step.method,
        url=url,
        headers=headers,
        body=body.encode(),
        secrets=CREDENTIAL_HEADERS | filled,
        body_is_secret=step.body is not None and bool(step.body.placeholders),
        redirects=0 if step.wants_redirect else REDIRECTS_MOST,
        keep_body=step.reads_body,
        jar=run.jar,
    )


def _names(step: ScenarioStep, header: str) -> bool:
    return any(name.lower() == header for name, _ in step.headers)


def _fill(
    template: Template, run: _Run, context: Context, step: ScenarioStep, part: str, watch: Stopwatch
) -> str:
    try:
        return fill(template, run.values, context)
    except CannotFill as cannot:
        if cannot.is_secret:
            raise LocalFailure(UnknownReason.BAD_SECRET) from None
        watch.place = f"step {step.number} {part} {step.host}"
        raise TargetFailure(FailureClass.PROTOCOL_ERROR) from None
