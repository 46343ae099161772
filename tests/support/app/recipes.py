"""Runs the recipes of docs/how-to/pipelines.md as their build servers do."""

import os
import re
import subprocess
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.processes.daemon_process import LEADLINE

PAGE = Path(__file__).parents[3] / "docs/how-to/pipelines.md"
RUN_URL = "https://ci.example/runs/4711"
yaml: Any = import_module("yaml")


def blocks(language: str, title: str) -> list[str]:
    """Returns the code blocks of a section."""
    section = PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", section, re.S)


def documents(title: str) -> list[Any]:
    return [yaml.safe_load(text) for text in blocks("yaml", title)]


@dataclass
class Host:
    """A machine of a build server: a folder with a deploy.sh, and the URL, token and project of
    Leadline.
    """

    folder: Path
    url: str
    token: str
    project: str
    service: str
    run: str = "4711"
    said: list[str] = field(default_factory=list)

    def prepare(self, *, deploys: bool = True) -> None:
        script = self.folder / "deploy.sh"
        script.write_text(
            f'#!/bin/sh\necho "deployed $1" >> deployed\nexit {0 if deploys else 3}\n'
        )
        script.chmod(0o755)

    @property
    def deployed(self) -> bool:
        return (self.folder / "deployed").exists()

    def execute(self, *command: str, **more: str) -> int:
        """Returns the exit status, and keeps the output for the report of a failure."""
        environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("LEADLINE_", "GITHUB_"))},
            "PATH": f"{Path(LEADLINE).parent}:{os.environ['PATH']}",
            "LEADLINE_URL": self.url,
            "LEADLINE_TOKEN": self.token,
            **more,
        }
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        self.said += [done.stdout, done.stderr]
        return done.returncode

    def shell(self, *, otherwise: bool = False) -> int:
        """Runs release.sh; with `otherwise` the second block replaces the call of the gate."""
        script, lenient = blocks("sh", "Plain shell")
        if otherwise:
            asks = next(line for line in script.splitlines() if line.startswith("decision=$("))
            script = script.replace(f"{asks}\n", lenient)
        (self.folder / "release.sh").write_text(script)
        names = {"PROJECT": self.project, "SERVICE": self.service, "RELEASE": self.run}
        return self.execute("sh", "release.sh", **names)

    def github(self) -> int:
        """Runs the steps as GitHub does: after a failure only those with a matching `if`."""
        (workflow,) = documents("GitHub Actions")
        job = workflow["jobs"]["release"]
        outputs: dict[str, dict[str, str]] = {}
        outcomes: dict[str, str] = {}
        failed = 0
        for step in job["steps"]:
            name = step.get("id", "")
            runs = self._is_run(step, failed, outcomes)
            if "run" not in step or step["run"].startswith("pip "):
                continue
            if not runs:
                outcomes[name] = "skipped"
                continue
            output = self.folder / f"output-{len(self.said)}"
            output.touch()
            given = {**job["env"], **step.get("env", {})}
            environment = {k: self._filled(v, outputs, outcomes) for k, v in given.items()}
            environment |= {
                "GITHUB_OUTPUT": str(output),
                "GITHUB_RUN_ID": self.run,
                "GITHUB_RUN_ATTEMPT": "1",
                "GITHUB_REF_NAME": "v1.4.2",
            }
            status = self.execute("bash", "-e", "-c", step["run"], **environment)
            outcomes[name] = "failure" if status else "success"
            lines = output.read_text().splitlines()
            outputs[name] = dict(line.split("=", 1) for line in lines)
            if status and not step.get("continue-on-error"):
                failed = failed or status
        return failed

    def _is_run(self, step: Any, failed: int, outcomes: dict[str, str]) -> bool:
        condition = step.get("if")
        if condition is None:
            return failed == 0
        assert condition == "always() && steps.deploy.outcome != 'skipped'"
        return outcomes["deploy"] != "skipped"

    def _filled(
        self, text: str, outputs: dict[str, dict[str, str]], outcomes: dict[str, str]
    ) -> str:
        values = {
            "vars.LEADLINE_URL": self.url,
            "secrets.LEADLINE_TOKEN": self.token,
            "vars.LEADLINE_PROJECT": self.project,
            "vars.LEADLINE_SERVICE": self.service,
            "github.server_url": "https://ci.example",
            "github.repository": "acme/shop",
            "github.run_id": self.run,
            "steps.gate.outputs.decision-id": outputs.get("gate", {}).get("decision-id", ""),
            "steps.deploy.outcome": outcomes.get("deploy", ""),
        }
        return re.sub(r"\$\{\{ (.*?) \}\}", lambda found: values[found[1]], text)

    def gitlab(self) -> int:
        """Runs the jobs; the second gets the variables of the first one's report."""
        (pipeline,) = documents("GitLab CI")
        variables = {"LEADLINE_PROJECT": self.project, "LEADLINE_SERVICE": self.service}
        for stage in pipeline["stages"]:
            job = pipeline[stage]
            assert job["stage"] == stage
            variables |= {"CI_JOB_ID": self.run, "CI_COMMIT_REF_NAME": "v1.4.2"}
            variables["CI_JOB_URL"] = RUN_URL
            status = self.execute(
                "bash", "-eo", "pipefail", "-c", _lines(job["script"]), **variables
            )
            variables["CI_JOB_STATUS"] = "failed" if status else "success"
            if "after_script" in job:
                self.execute("bash", "-e", "-c", _lines(job["after_script"]), **variables)
            if status:
                return status
            report = job.get("artifacts", {}).get("reports", {}).get("dotenv")
            if report:
                text = (self.folder / report).read_text()
                variables |= dict(line.split("=", 1) for line in text.splitlines())
        return 0

    def argo(self) -> int:
        """Runs the command of the container with the arguments of the rollout."""
        template, rollout = documents("Argo Rollouts")
        (metric,) = template["spec"]["metrics"]
        pod = metric["provider"]["job"]["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        (analysis,) = [s for s in rollout["spec"]["strategy"]["canary"]["steps"] if "analysis" in s]
        named = {argument["name"] for argument in analysis["analysis"]["args"]}
        assert named == {argument["name"] for argument in template["spec"]["args"]}
        values = {"args.project": self.project, "args.service": self.service}
        command = [
            re.sub(r"\{\{(.*?)\}\}", lambda found: values[found[1]], part)
            for part in container["command"]
        ]
        return self.execute(*command)


def _lines(script: list[str]) -> str:
    return "\n".join(script)
