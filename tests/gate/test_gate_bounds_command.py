"""The daemon applies the gate limits of its configuration."""

import pytest

from tests.support.processes.daemon_process import Refusal, daemon


@pytest.mark.soak
def test_the_daemon_applies_the_configured_gate_limits() -> None:
    with daemon(LEADLINE_GATE__EVALUATE_RATE_PRINCIPAL_PER_MINUTE="3") as leadline:
        leadline.start()
        leadline.sign_in()
        (org,) = leadline.api("GET", "/organizations")
        (project,) = leadline.api("GET", f"/organizations/{org['id']}/projects")
        of_project = f"/projects/{project['id']}"
        service = leadline.api("POST", f"{of_project}/services", {"slug": "shop"})
        path = f"{of_project}/services/{service['id']}/gate"
        made = [leadline.api("POST", path) for _ in range(3)]
        assert {said["state"] for said in made} == {"NOT_CONFIGURED"}
        with pytest.raises(Refusal) as refused:
            leadline.api("POST", path)
        assert (refused.value.status, refused.value.body) == (429, b'{"error":"principal_rate"}')
        assert 1 <= int(refused.value.headers["retry-after"]) <= 20
        read = leadline.api("GET", f"{of_project}/gate/decisions/{made[0]['decision_id']}")
        assert read == made[0]
        _, _, metrics = leadline.raw("GET", "/metrics")
        text = metrics.decode()
        assert 'leadline_gate_evaluate_rejected_total{reason="principal_rate"} 1.0' in text
        labels = 'action="none",overridden="false",state="NOT_CONFIGURED"'
        assert f"leadline_gate_decisions_total{{{labels}}} 3.0" in text
        ahead = text.partition("\nleadline_gate_ledger_ahead_seconds ")[2].partition("\n")[0]
        assert float(ahead) > 7 * 86_400
