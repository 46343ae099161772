"""The restrictions of the apprise library: known services, their hosts, the egress policy, and no
redirects.
"""

from dataclasses import replace
from typing import Any

import httpx
import pytest
import trio

from leadline.probes.check.failure import TargetFailure
from leadline.probes.check.result import FailureClass
from leadline.probes.check.target import Url
from leadline.probes.net.egress_policy import notify_policy
from leadline.probes.senders import apprise
from leadline.probes.senders.deliver import deliver
from leadline.probes.senders.send_result import NotDelivered, SendFailure
from tests.support.peers.fake_services import CANARY, a_message, means_of
from tests.support.peers.servers import HANGS_SECONDS, Names, Prober

HEX = "0123456789abcdef" * 2
EXAMPLES = {
    "bulksms": "bulksms://token:secret@15551230000",
    "clicksend": "clicksend://user:key@15551230000",
    "flock": f"flock://{HEX[:24]}",
    "gchat": "gchat://space/key/token",
    "ifttt": f"ifttt://{HEX}/event",
    "join": f"join://{HEX}/group.all",
    "line": "line://" + "a" * 172 + "=/U" + HEX,
    "mailgun": f"mailgun://user@example.com/{HEX}-{HEX[:8]}-{HEX[:8]}/a@example.com",
    "msgbird": f"msgbird://{'a' * 25}/15551230000/15551230001",
    "pagertree": "pagertree://int_0123456789",
    "pbul": f"pbul://{'a' * 32}",
    "plivo": f"plivo://{'a' * 25}@{'b' * 40}/15551230000/15551230001",
    "pover": f"pover://{'u' * 30}@{'t' * 30}",
    "prowl": f"prowl://{'a' * 40}",
    "pushy": f"pushy://{HEX}/@topic",
    "sendgrid": "sendgrid://abcd:user@example.com/newuser@example.com",
    "signl4": "signl4://secret",
    "spush": "spush://abcdef",
    "twilio": f"twilio://AC{HEX}:{HEX}@15551230000/15551230001",
    "victorops": f"victorops://routing@{HEX[:8]}-{HEX[:4]}-{HEX[:4]}-{HEX[:4]}-{HEX[:12]}",
    "vonage": "vonage://AC012345:secret1234567890@15551230000/15551230001",
    "wxteams": "wxteams://" + "a" * 80,
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Records the requests of the library and answers them with success, without a network."""
    got: list[Any] = []

    async def send_request(egress: Any, method: str, url: Url, **given: Any) -> httpx.Response:
        got.append((url, given["body"]))
        body = b'{"status":1,"success":true,"messages":[{"status":"0"}]}'
        return httpx.Response(200, content=body)

    monkeypatch.setattr(apprise, "send_request", send_request)
    return got


def test_every_service_has_an_example() -> None:
    assert set(EXAMPLES) == set(apprise.SERVICES)


@pytest.mark.parametrize("scheme", sorted(EXAMPLES))
async def test_a_service_is_called_only_at_its_own_hosts(
    prober: Prober, asked: list[Any], scheme: str
) -> None:
    await deliver("apprise", a_message(), {"url": EXAMPLES[scheme]}, means_of(prober.reach))
    assert len(asked) == 1
    url, _ = asked[0]
    assert url.host in apprise.SERVICES[scheme]
    assert url.scheme == "https"


async def test_url_options_change_neither_host_nor_verification(
    prober: Prober, asked: list[Any]
) -> None:
    url = EXAMPLES["pover"] + "?verify=no&host=127.0.0.1&template=/etc/passwd&store=yes"
    await deliver("apprise", a_message(), {"url": url}, means_of(prober.reach))
    sent_to, body = asked[0]
    assert sent_to.origin == ("https", "api.pushover.net", 443)
    assert b"root:" not in body


async def test_another_host_is_blocked(
    prober: Prober, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(apprise.SERVICES, "pover", frozenset({"other.example.com"}))
    with pytest.raises(NotDelivered) as caught:
        await deliver("apprise", a_message(), {"url": EXAMPLES["pover"]}, means_of(prober.reach))
    assert (caught.value.verdict, asked) == (SendFailure.BLOCKED, [])


async def test_a_private_address_of_a_service_name_is_blocked(prober: Prober, names: Names) -> None:
    names.records[("api.pushover.net", "A")] = [["10.0.0.1"]]
    reach = replace(prober.reach, policy=notify_policy())
    with pytest.raises(NotDelivered) as caught:
        await deliver("apprise", a_message(), {"url": EXAMPLES["pover"]}, means_of(reach))
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.BLOCKED, "target_blocked")


@pytest.mark.parametrize(
    ("ends", "verdict", "reason"),
    [
        (401, SendFailure.REFUSED, "http_status 401"),
        (500, SendFailure.RETRY, "http_status 500"),
        (FailureClass.CONNECT_REFUSED, SendFailure.RETRY, "connect_refused"),
    ],
)
async def test_a_failure_has_a_reason_code_and_no_log(
    prober: Prober,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    ends: int | FailureClass,
    verdict: SendFailure,
    reason: str,
) -> None:
    async def send_request(*_: Any, **_given: Any) -> httpx.Response:
        if isinstance(ends, FailureClass):
            raise TargetFailure(ends)
        return httpx.Response(ends, content=CANARY.encode())

    monkeypatch.setattr(apprise, "send_request", send_request)
    with caplog.at_level(0), pytest.raises(NotDelivered) as caught:
        await deliver(
            "apprise", a_message(title=CANARY), {"url": EXAMPLES["pover"]}, means_of(prober.reach)
        )
    assert (caught.value.verdict, caught.value.reason) == (verdict, reason)
    assert CANARY not in caplog.text
    assert "u" * 30 not in caplog.text


async def test_an_invalid_apprise_url_is_refused(prober: Prober) -> None:
    with pytest.raises(NotDelivered) as caught:
        await deliver("apprise", a_message(), {"url": "pover://only"}, means_of(prober.reach))
    assert (caught.value.verdict, caught.value.reason) == (SendFailure.REFUSED, "bad_definition")


async def test_a_silent_service_ends_at_the_delivery_timeout(
    prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send_request(*_: Any, **_given: Any) -> httpx.Response:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr(apprise, "send_request", send_request)
    # Without the time of the library's first import.
    apprise._library()
    monkeypatch.setattr("leadline.probes.senders.deliver.SEND_SECONDS", 0.5)
    with trio.fail_after(HANGS_SECONDS), pytest.raises(NotDelivered) as caught:
        await deliver("apprise", a_message(), {"url": EXAMPLES["pover"]}, means_of(prober.reach))
    assert caught.value.reason == "timeout"
