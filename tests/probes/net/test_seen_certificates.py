"""The certificate that a result has: the one of the last TLS handshake with the target."""

import ssl
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
import trustme
from hypothesis import given
from hypothesis import strategies as st

from leadline.probes.check.monitor_spec import CERTIFIED, MonitorType
from leadline.probes.check.registry import spec_of
from leadline.probes.check.result import Phases, Result, RunOutcome
from leadline.probes.jobs import seen_certificates
from leadline.probes.jobs.seen_certificates import EACH_MOST, REFRESH_US, SeenCertificates
from leadline.probes.net.certificate_expiry import end_of
from tests.probes.kinds.test_http import serving_tls
from tests.probes.kinds.test_tls import HOST, lasting, secured
from tests.support.peers.servers import Prober, answer, answering, serving

CERTIFICATES = [
    ssl.PEM_cert_to_DER_cert(
        trustme.CA()
        .issue_cert(HOST, not_after=datetime(2026, 12, day, tzinfo=UTC))
        .cert_chain_pems[0]
        .bytes()
        .decode()
    )
    for day in range(1, 12)
]


def days_left(result: Result) -> int | None:
    """Returns the whole days until the certificate of the result ends."""
    if result.certificate is None:
        return None
    end = end_of(result.certificate)
    assert end is not None
    left = datetime.fromtimestamp(end / 1e6, UTC) - datetime.now(UTC)
    return round(left / timedelta(days=1))


def test_types_with_certificates_are_those_with_the_placeholder() -> None:
    specs = {kind: spec_of(kind) for kind in MonitorType}
    known = {kind for kind, spec in specs.items() if spec and "CERT_EXPIRY" in spec.placeholders}
    assert known == CERTIFIED


async def test_results_have_the_certificate_also_of_a_failure(
    prober: Prober, authority: trustme.CA
) -> None:
    async with serving_tls(answering(answer()), lasting(authority, days=10)) as port:
        good = await prober.check("http", f"https://{HOST}:{port}/")
        failed = await prober.check("http", f"https://{HOST}:{port}/", "[STATUS] == 500")
    async with serving_tls(answering(answer(status="500 No")), lasting(authority, days=40)) as port:
        bad = await prober.check("http", f"https://{HOST}:{port}/")
    assert [days_left(one) for one in (good, failed, bad)] == [10, 10, 40]
    assert [one.outcome for one in (good, failed, bad)] == ["up", "down", "down"]


async def test_an_expired_certificate_is_seen_only_without_verification(
    prober: Prober, authority: trustme.CA
) -> None:
    async with serving_tls(answering(answer()), lasting(authority, days=-2)) as port:
        url = f"https://{HOST}:{port}/"
        strict = await prober.check("http", url)
        lax = await prober.check("http", url, tls_skip_verify=True)
    assert (strict.outcome, days_left(strict)) == (RunOutcome.DOWN, None)
    assert (lax.outcome, days_left(lax)) == (RunOutcome.UP, -2)


async def test_a_redirect_to_https_gives_the_certificate_of_its_target(
    prober: Prober, authority: trustme.CA
) -> None:
    async with serving_tls(answering(answer()), lasting(authority, days=40)) as port:
        to_there = answer(b"", "302 Found", f"Location: https://{HOST}:{port}/")
        async with serving(answering(to_there)) as plain:
            from_plain = await prober.check("http", f"http://{HOST}:{plain}/")
        async with serving_tls(answering(to_there), lasting(authority, days=10)) as first:
            from_tls = await prober.check("http", f"https://{HOST}:{first}/")
    assert (days_left(from_plain), days_left(from_tls)) == (40, 40)


@pytest.mark.parametrize("scheme", ["https", "http"])
async def test_a_redirect_to_a_server_that_refuses_gives_no_certificate(
    scheme: str, prober: Prober, authority: trustme.CA
) -> None:
    away = answer(b"", "302 Found", f"Location: {scheme}://{HOST}:1/")
    async with serving_tls(answering(away), lasting(authority, days=10)) as port:
        result = await prober.check("http", f"https://{HOST}:{port}/")
    assert (result.outcome, result.certificate) == (RunOutcome.DOWN, None)


async def test_a_check_without_tls_has_none(prober: Prober) -> None:
    async with serving(answering(answer())) as port:
        result = await prober.check("http", f"http://{HOST}:{port}/")
    assert (result.outcome, result.certificate) == (RunOutcome.UP, None)


@pytest.mark.parametrize("kind", ["tls", "grpc", "websocket", "promql", "redis", "smtp"])
async def test_each_type_sees_the_certificate(
    kind: str, prober: Prober, authority: trustme.CA
) -> None:
    settings: dict[str, dict[str, object]] = {
        "grpc": {"tls": True},
        "promql": {"query": "1"},
        "redis": {"tls": True, "key": "queue"},
        "smtp": {"encryption": "tls"},
    }
    scheme = {"websocket": "wss://{}/", "promql": "https://{}/"}.get(kind, "{}")
    async with secured(lasting(authority, days=10)) as place:
        target = scheme.format(place)
        given = settings.get(kind, {})
        result = await prober.check(kind, target, timeout_seconds=2, **given)
    assert days_left(result) == 10


# The notes of a process.


def result_of(at: int, der: bytes | None, outcome: RunOutcome = RunOutcome.UP) -> Result:
    return Result(at, outcome, 1, None, "", Phases(), certificate=der)


@given(
    st.lists(
        st.tuples(st.integers(0, REFRESH_US // 3), st.sampled_from([None, *CERTIFICATES[:3]])),
        max_size=40,
    )
)
def test_each_certificate_is_noted_once_in_the_refresh_time(
    steps: list[tuple[int, bytes | None]],
) -> None:
    seen = SeenCertificates[str]()
    noted: dict[bytes | None, int] = {}
    now = 0
    for pause, der in steps:
        now += pause
        seen.see("shop", 1, result_of(now, der))
        is_due = der not in noted or now - noted[der] >= REFRESH_US
        end = None if der is None else end_of(der)
        assert [(one.ends_at, one.seen_at) for one in seen.take(9)] == [(end, now)] * is_due
        if is_due:
            noted[der] = now


def test_each_revision_is_noted_also_a_lower_one_after_a_restore() -> None:
    seen, der = SeenCertificates[str](), CERTIFICATES[0]
    for revision in (1, 2, 2, 1, 2):
        seen.see("shop", revision, result_of(0, der))
    assert {one.revision for one in seen.take(9)} == {1, 2}
    for revision in (1, 1):
        seen.see("shop", revision, result_of(0, der))
    assert [one.revision for one in seen.take(9)] == [1]


def of_version(der: bytes, number: int) -> bytes:
    """Returns a certificate that states another version, as OpenSSL accepts it unverified."""
    version = b"\xa0\x03\x02\x01"
    assert der.count(version + b"\x02") == 1
    return der.replace(version + b"\x02", version + bytes([number]))


@pytest.mark.parametrize("number", [1, 3, 8, 255])
def test_a_certificate_of_an_unknown_version_has_an_unknown_end(number: int) -> None:
    assert end_of(of_version(CERTIFICATES[0], number)) is None


@given(
    st.sampled_from(CERTIFICATES), st.lists(st.tuples(st.integers(0, 899), st.binary()), max_size=3)
)
def test_mutated_certificates_have_an_end_or_none(
    der: bytes, changes: list[tuple[int, bytes]]
) -> None:
    for at, put in changes:
        der = der[:at] + put + der[at + len(put) :]
    seen = SeenCertificates[str]()
    seen.see("shop", 1, result_of(0, der))
    assert [one.ends_at for one in seen.take(9)] == [
        end for end in [end_of(der)] if end is not None
    ]


def test_an_error_of_the_notes_ends_no_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_der: bytes) -> int:
        raise RuntimeError("broken")

    seen = SeenCertificates[str]()
    with monkeypatch.context() as patch:
        patch.setattr(seen_certificates, "end_of", broken)
        seen.see("shop", 1, result_of(0, CERTIFICATES[0]))
    assert len(seen) == 0
    seen.see("shop", 1, result_of(0, CERTIFICATES[0]))
    assert len(seen) == 1


def test_a_failure_without_a_handshake_notes_nothing() -> None:
    seen = SeenCertificates[str]()
    seen.see("shop", 1, result_of(0, None, RunOutcome.DOWN))
    seen.see("shop", 1, result_of(0, b"no certificate"))
    assert len(seen) == 0


def test_a_new_certificate_for_each_handshake_is_bounded() -> None:
    seen = SeenCertificates[str]()
    for number, der in enumerate(CERTIFICATES):
        seen.see("shop", 1, result_of(number, der))
    assert len(seen.take(99)) == EACH_MOST
    seen.see("shop", 1, result_of(REFRESH_US + len(CERTIFICATES), CERTIFICATES[-1]))
    assert len(seen.take(99)) == 1


def test_the_waiting_notes_and_the_monitors_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen_certificates, "PENDING_MOST", 3)
    monkeypatch.setattr(seen_certificates, "MONITORS_MOST", 2)
    seen = SeenCertificates[int]()
    for key in range(5):
        seen.see(key, 1, result_of(key, CERTIFICATES[0]))
    assert [one.key for one in seen.take(99)] == [2, 3, 4]
    assert len(seen._reported) <= 2


@given(st.randoms(use_true_random=False))
def test_notes_that_come_back_replace_no_newer_ones(random: Random) -> None:
    seen, der = SeenCertificates[str](), CERTIFICATES[0]
    seen.see("shop", 1, result_of(0, der))
    taken = seen.take(9)
    later = REFRESH_US + random.randrange(9)
    seen.see("shop", 1, result_of(later, der))
    seen.give_back(taken)
    assert [one.seen_at for one in seen.take(9)] == [later]
