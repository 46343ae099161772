"""Probe of the async canary: one transaction, from its submission to its verified end.

It has five stages within the run's one deadline. The end of each is reported. Every stage reaches
only globally routable addresses, also if the probe policy allows others. A message contains only
the failure class and the host.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Final

import trio

from ...check.canary_stages import Stage, StageEnd, Stages
from ...check.check import Check
from ...check.condition_evaluation import ProbeValues
from ...check.failure import LocalFailure, TargetFailure
from ...check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ...check.observation import Observation
from ...check.phase_timer import Stopwatch, overdue
from ...check.result import UnknownReason
from ...check.target import read_url
from ...net.egress import Egress
from ...net.egress_policy import canary_policy
from .assert_result import demand, demand_cleanup
from .await_result import awaited
from .canary_requests import BINDINGS, SCHEMES, BoundSecrets, bound
from .correlate import completion_url, correlated
from .fixtures import FIXTURES
from .json_answer import JsonAnswer
from .submit import idempotency_key, submitted
from .workflow import BadWorkflow, Workflow, read_workflow

WORKFLOW_LONGEST: Final = 64 * 1024


def _rule(_target: str, config: Config) -> list[SpecFault]:
    """Validates the workflow and the settings of its secrets.

    Each binding needs one setting, which names the same secret as the workflow. A setting without a
    binding is a fault.
    """
    if config.get("workflow") is None:
        return []
    try:
        secrets = read_workflow(config["workflow"], FIXTURES).secrets
    except BadWorkflow as bad:
        return [SpecFault("config.workflow", str(bad))]
    faults = []
    for binding in sorted(secrets):
        key = f"{BINDINGS}_{binding}_ref"
        if not config.get(key):
            faults.append(
                SpecFault(f"config.{key}", "is required, as the workflow has that binding")
            )
        elif config[key] != secrets[binding]:
            faults.append(SpecFault(f"config.{key}", "names another secret than the workflow does"))
    named = SPEC.bindings_of(config)
    return faults + [
        SpecFault(f"config.{named[binding]}", "names a binding that the workflow does not have")
        for binding in sorted(named.keys() - secrets.keys())
    ]


def _declares(config: Config) -> frozenset[str]:
    try:
        return read_workflow(config.get("workflow"), FIXTURES).bindings
    except BadWorkflow:
        return frozenset()


SPEC = Spec(
    type=MonitorType.ASYNC_CANARY,
    help="Submits one asynchronous transaction, awaits its end, and checks its result.",
    target=TargetForm.NONE,
    fields=(
        Field(
            name="workflow",
            type=FieldType.DOCUMENT,
            help="Submission, completion, assertions and cleanup as JSON; stored encrypted.",
            required=True,
            secret=True,
            multiline=True,
            longest=WORKFLOW_LONGEST,
        ),
    ),
    bindings=BINDINGS,
    declares=_declares,
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    try:
        workflow = read_workflow(check.config.get("workflow"), FIXTURES)
    except BadWorkflow:
        raise LocalFailure(UnknownReason.BAD_DEFINITION) from None
    guarded = replace(reach, policy=canary_policy(reach.policy.deny))
    run = _Run(workflow, bound(workflow, check), guarded, watch)
    answer = await run.transact(idempotency_key(check))
    return Observation(ProbeValues(connected=True, status=answer.status), code=answer.status)


@dataclass(slots=True)
class _Run:
    workflow: Workflow
    secrets: BoundSecrets
    reach: Egress
    watch: Stopwatch
    deadline: float = field(default_factory=trio.current_effective_deadline)

    async def transact(self, key: str) -> JsonAnswer:
        workflow, reach, watch = self.workflow, self.reach, self.watch
        watch.place = read_url(workflow.submit.url, SCHEMES).host
        began_us = watch.elapsed_us()
        with self._stage(Stage.SUBMIT):
            response = await submitted(workflow.submit, self.secrets, key, reach, watch)
        with self._stage(Stage.CORRELATE):
            correlation = await correlated(workflow, response, reach)
            url = completion_url(workflow.completion.url, correlation)
        watch.place = url.host
        with self._stage(Stage.AWAIT_RESULT):
            answer = await awaited(workflow.completion, url, self.secrets, reach, watch)
        took_us = watch.elapsed_us() - began_us
        with self._stage(Stage.ASSERT_RESULT):
            await demand(workflow.result, answer, took_us, reach)
        with self._stage(Stage.CLEANUP_VALIDATION):
            await demand_cleanup(workflow.cleanup, workflow.result, answer, reach)
        return answer

    @contextmanager
    def _stage(self, stage: Stage) -> Iterator[None]:
        """Reports the end of a stage, also on errors, and re-raises every exception."""
        end = StageEnd.UNOBTAINABLE
        try:
            yield
            end = StageEnd.PASSED
        except TargetFailure:
            end = StageEnd.FAILED
            raise
        except trio.Cancelled:
            end = self._cut_short()
            raise
        finally:
            report_stage(self.reach.stages, stage, end)

    def _cut_short(self) -> StageEnd:
        """Returns the end of a cancelled stage.

        At the run's own deadline the unfinished phase decides, as for any check. An earlier
        cancellation is unrelated to the target.
        """
        if trio.current_time() < self.deadline:
            return StageEnd.CANCELLED
        silent = isinstance(overdue(self.watch), TargetFailure)
        return StageEnd.FAILED if silent else StageEnd.UNOBTAINABLE


def report_stage(stages: Stages | None, stage: Stage, end: StageEnd) -> None:
    if stages is not None:
        stages(stage, end)
