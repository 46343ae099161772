"""Channels through the apprise library, only for services with fixed hosts.

Invariant: every request of the library uses the guarded egress, to a host of the service, over
verified TLS, without redirects. The library is imported on first use and runs in a thread. Its log
is disabled, because it contains texts and tokens.
"""

import logging
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import httpx
import trio

from ..check.failure import LocalFailure, TargetFailure
from ..check.target import BadTarget, read_url
from ..net.egress_httpx import send_request
from .channel_spec import ChannelSetting, ChannelSpec, Config, SettingFault
from .message import Message, NotificationStatus, body_lines, title_line
from .send_result import (
    ANSWER_BYTES_MOST,
    SEND_SECONDS,
    Delivered,
    NotDelivered,
    SendContext,
    SendFailure,
    by_status,
    renamed,
)

if TYPE_CHECKING:
    import requests

# Scheme of an apprise URL → hosts of its service. The URL does not influence the host.
SERVICES: Final[Mapping[str, frozenset[str]]] = {
    scheme: frozenset(hosts.split())
    for scheme, hosts in {
        "bulksms": "api.bulksms.com",
        "clicksend": "rest.clicksend.com",
        "flock": "api.flock.com",
        "gchat": "chat.googleapis.com",
        "ifttt": "maker.ifttt.com",
        "join": "joinjoaomgcd.appspot.com",
        "line": "api.line.me",
        "mailgun": "api.mailgun.net api.eu.mailgun.net",
        "msgbird": "rest.messagebird.com",
        "pagertree": "api.pagertree.com",
        "pbul": "api.pushbullet.com",
        "plivo": "api.plivo.com",
        "pover": "api.pushover.net",
        "prowl": "api.prowlapp.com",
        "pushy": "api.pushy.me",
        "sendgrid": "api.sendgrid.com",
        "signl4": "connect.signl4.com",
        "spush": "api.simplepu.sh",
        "twilio": "api.twilio.com",
        "victorops": "alert.victorops.com",
        "vonage": "rest.nexmo.com",
        "wxteams": "webexapis.com api.ciscospark.com",
    }.items()
}
# Requests of one delivery. A service may need one per recipient.
REQUESTS_MOST: Final = 20
# Headers that frame the message are set by the client.
_FRAMING: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)


def _rule(config: Config) -> list[SettingFault]:
    scheme, separator, rest = config.get("url", "").partition("://")
    if scheme.lower() in SERVICES and separator and rest:
        return []
    known = ", ".join(sorted(SERVICES))
    return [SettingFault("config.url", f"must begin with one of {known}, and ://")]


SPEC: Final = ChannelSpec(
    type="apprise",
    help="A service of the apprise library that has a fixed host.",
    settings=(
        ChannelSetting(
            name="url",
            help="The service's apprise URL, such as pover://user@token",
            required=True,
            secret=True,
            pattern=r"\S+",
            hint="must not contain blanks",
        ),
    ),
    rule=_rule,
)


@dataclass(slots=True)
class _Way:
    """Egress of one delivery. `ended` is the reason why its last request failed."""

    means: SendContext
    hosts: frozenset[str]
    left: int = REQUESTS_MOST
    ended: NotDelivered | None = None

    async def go(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        try:
            where = read_url(url, ("https",))
        except BadTarget:
            raise NotDelivered(SendFailure.BLOCKED, "target_blocked") from None
        if where.host not in self.hosts or self.left < 1:
            raise NotDelivered(SendFailure.BLOCKED, "target_blocked")
        self.left -= 1
        try:
            response = await send_request(
                self.means.reach,
                method,
                where,
                headers={n: v for n, v in headers.items() if n.lower() not in _FRAMING},
                body=body,
                bytes_most=ANSWER_BYTES_MOST,
                seconds=SEND_SECONDS,
            )
        except (TargetFailure, LocalFailure) as failure:
            raise renamed(failure) from None
        if not response.is_success:
            self.ended = by_status(response.status_code, response.headers.get("retry-after", ""))
        return response


_way: ContextVar[_Way] = ContextVar("_way")


def _send_prepared(_adapter: object, request: Any, **_options: Any) -> "requests.Response":
    """Replaces `HTTPAdapter.send` of requests. Cancellation passes through unchanged."""
    import requests

    way = _way.get(None)
    body = request.body or b""
    if way is None or not isinstance(body, bytes | str):
        raise requests.ConnectionError("no egress is set for this thread")
    whole = body.encode() if isinstance(body, str) else body
    headers = {str(n): _text(v) for n, v in request.headers.items()}
    try:
        came = trio.from_thread.run(way.go, request.method, request.url, headers, whole)
    except NotDelivered as why:
        way.ended = why
        raise requests.ConnectionError(why.reason) from None
    found = requests.Response()
    found.status_code = came.status_code
    found.url = request.url
    found.request = request
    # The headers contain no Location, so that requests follows no redirect.
    found.headers.update(came.headers)
    found._content = came.content
    return found


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def _library() -> Any:
    """Returns the apprise module after patching requests, which no other code uses."""
    import apprise
    from requests import adapters, sessions

    if getattr(adapters.HTTPAdapter, "send") is not _send_prepared:  # noqa: B009
        setattr(adapters.HTTPAdapter, "send", _send_prepared)  # noqa: B010
        # It would add credentials from a netrc of this host.
        setattr(sessions, "get_netrc_auth", lambda *_args, **_kw: None)  # noqa: B010
        log = logging.getLogger("apprise")
        log.propagate = False
        log.handlers = [logging.NullHandler()]
        log.setLevel(logging.CRITICAL + 1)
    return apprise


def _notify(url: str, message: Message, way: _Way) -> None:
    apprise = _library()
    _way.set(way)
    kinds = {
        NotificationStatus.DOWN: apprise.NotifyType.FAILURE,
        NotificationStatus.RECOVERED: apprise.NotifyType.SUCCESS,
        NotificationStatus.TEST: apprise.NotifyType.INFO,
    }
    asset = apprise.AppriseAsset(storage_mode=apprise.PersistentStoreMode.MEMORY, async_mode=False)
    service = apprise.Apprise.instantiate(url, asset=asset, suppress_exceptions=True)
    if not service:
        raise NotDelivered(SendFailure.REFUSED, "bad_definition")
    # The pauses between requests would exceed the time of the delivery.
    service.request_rate_per_sec = 0
    lines = [*body_lines(message), *([message.link] if message.link else [])]
    was_taken = service.notify(
        body="\n".join(lines) or title_line(message),
        title=title_line(message),
        notify_type=kinds[message.status],
        body_format=apprise.NotifyFormat.TEXT,
    )
    if not was_taken:
        raise way.ended or NotDelivered(SendFailure.REFUSED, "protocol_error")


async def send(message: Message, config: Config, means: SendContext) -> Delivered:
    url = config["url"]
    way = _Way(means, SERVICES[url.partition("://")[0].lower()])
    # On cancellation the thread is not abandoned. Its current or next request fails and ends it.
    work = partial(_notify, url, message, way)
    await trio.to_thread.run_sync(work, limiter=means.reach.threads)
    return Delivered()
