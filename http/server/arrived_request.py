"""What the request pipeline reads of a request, and a request of the ASGI server itself."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import cached_property
from typing import Any, Protocol
from urllib.parse import parse_qsl

import trio
from werkzeug.datastructures import Headers, MultiDict
from werkzeug.http import parse_options_header

Scope = dict[str, Any]
Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]


class QueryParameters(Protocol):
    """Parameters of a query; one name can have several values."""

    def get(self, name: str, /) -> Any: ...

    def getlist(self, name: str, /) -> list[str]: ...

    def items(self, multi: bool) -> Iterable[tuple[str, str]]: ...


class RequestHeaders(Protocol):
    def items(self) -> Iterable[tuple[str, str]]: ...

    def __getitem__(self, name: str, /) -> str: ...


class ArrivedRequest(Protocol):
    """A request before its admission. `quart.Request` and `AsgiRequest` have these members."""

    @property
    def method(self) -> str: ...

    @property
    def path(self) -> str: ...

    @property
    def full_path(self) -> str: ...

    @property
    def scope(self) -> Any: ...

    @property
    def headers(self) -> RequestHeaders: ...

    @property
    def args(self) -> QueryParameters: ...

    @property
    def mimetype(self) -> str: ...

    @property
    def content_length(self) -> int | None: ...

    @property
    def body(self) -> Any: ...


class AsgiRequest:
    """A request of the ASGI server. Its members have the values that Quart gives them."""

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.scope = scope
        # Ends the request if the client disconnects before its body has arrived.
        self.handling = trio.CancelScope()
        # Set when nothing of the body is left to receive.
        self.received = trio.Event()
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        self._receive = receive

    @property
    def full_path(self) -> str:
        return f"{self.path}?{self.scope['query_string'].decode()}"

    @cached_property
    def headers(self) -> Headers:
        return Headers(
            [
                (name.decode("latin-1"), value.decode("latin-1"))
                for name, value in self.scope["headers"]
            ]
        )

    @cached_property
    def args(self) -> MultiDict[str, str]:
        text = self.scope["query_string"].decode()
        # Bytes that are not UTF-8 stay percent-encoded, by the error handler of Werkzeug.
        return MultiDict(parse_qsl(text, keep_blank_values=True, errors="werkzeug.url_quote"))

    @property
    def mimetype(self) -> str:
        return parse_options_header(self.headers.get("Content-Type", ""))[0].lower()

    @property
    def content_length(self) -> int | None:
        text = self.headers.get("Content-Length", "")
        return int(text) if text.isdecimal() else None

    @property
    def body(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                # The beginning of a body must not pass for all of it.
                self.handling.cancel()
                await trio.sleep_forever()
            yield message.get("body", b"")
            if not message.get("more_body"):
                self.received.set()
                return
