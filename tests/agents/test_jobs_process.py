"""A job is parsed completely or refused with a counted reason. Secrets come from the envelope and
appear in no text."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.daemon.agent.job_parser import SECOND, RefusedJob, micros, moment, own_task, read_task
from leadline.probes.jobs.envelope import Contents
from tests.agents.job_samples import T0, TOKEN, definition, job

SECRET = "tr0ub4dor"


def refusal(raw: dict[str, Any], token: str = TOKEN) -> str:
    with pytest.raises(RefusedJob) as caught:
        read_task(raw, token, 1)
    assert SECRET not in str(caught.value)
    return caught.value.reason


@given(st.datetimes(timezones=st.just(UTC)))
def test_instants_are_exact_both_ways(at: datetime) -> None:
    assert moment(micros(at)) == at


def test_a_window_has_its_id_and_starts_within_its_lease_and_claim_time() -> None:
    task = read_task(job(T0, interval_seconds=7), TOKEN, 1)
    assert task.is_window
    assert task.begin_until == T0 + 7 * SECOND
    task = read_task(job(T0, lease_until=T0 + 3 * SECOND), TOKEN, 1)
    assert (task.begin_until, task.lease_until) == (T0 + 3 * SECOND, T0 + 3 * SECOND)


def test_a_run_without_a_window_keeps_its_id() -> None:
    raw = job(T0 + 5, is_window=False)
    task = read_task(raw, TOKEN, 1)
    assert not task.is_window
    assert str(task.job_id) == raw["job_id"]


def test_a_window_that_is_run_alone_has_the_id_that_the_server_would_give_it() -> None:
    monitor = uuid4()
    given_ = read_task(job(T0, monitor=monitor, revision=4), TOKEN, 1)
    alone = own_task(definition(monitor=monitor, revision=4), T0, 2)
    assert alone.job_id == given_.job_id
    assert alone.lease_until == 0


def test_secrets_of_the_envelope_are_in_the_check_and_in_no_text() -> None:
    secret = Contents(config={"password": SECRET}, secrets={"token": SECRET})
    raw = job(kind="http", target="https://a.example/", secret=secret, config={"username": "ada"})
    task = read_task(raw, TOKEN, 1)
    assert task.definition.check.text("password") == SECRET
    assert task.definition.check.text("username") == "ada"
    assert task.definition.check.secrets == {"token": SECRET}
    assert SECRET not in f"{task!r}"


def test_an_envelope_of_another_token_does_not_open() -> None:
    raw = job(kind="http", target="https://a.example/", secret=Contents(secrets={"token": SECRET}))
    assert refusal(raw, TOKEN + "b") == "envelope"


def test_a_job_with_secrets_and_without_an_envelope_is_refused() -> None:
    raw = job()
    raw["carrier"] = 2
    assert refusal(raw) == "envelope"


def test_an_envelope_older_than_its_carrier_is_refused() -> None:
    raw = job(secret=Contents(secrets={"token": SECRET}))
    raw["carrier"] = 3
    assert refusal(raw) == "envelope"


def test_a_carrier_of_a_later_version_is_refused() -> None:
    for carrier in (0, 5, 99):
        raw = job()
        raw["carrier"] = carrier
        assert refusal(raw) == "carrier_unknown"


def test_a_field_of_a_later_version_is_bound_by_the_envelope_and_else_passed_over() -> None:
    plain = job() | {"colour": "blue"}
    assert read_task(plain, TOKEN, 1).due == T0
    sealed = job(secret=Contents(secrets={"token": SECRET})) | {"colour": "blue"}
    assert refusal(sealed) == "envelope"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("job_id", "nobody"),
        ("due_at", "yesterday"),
        ("due_at", "2026-01-05T00:00:00"),
        ("anchor", None),
        ("interval_seconds", 0),
        ("interval_seconds", -60),
        ("interval_seconds", 4),
        ("timeout_seconds", 0),
        ("timeout_seconds", 10**9),
        ("config", {"a": 1}),
        ("conditions", "all"),
        ("carrier", "two"),
    ],
)
def test_an_unreadable_job_is_refused(field: str, value: Any) -> None:
    assert refusal(job() | {field: value}) == "unreadable"


def test_a_condition_that_cannot_be_read_is_not_left_out() -> None:
    assert refusal(job() | {"conditions": ["[STATUS] ==="]}) == "bad_definition"
