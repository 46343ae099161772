"""Response whose body is read while it arrives, for example a stream of events.

Redirects are followed as in `http_client`. The response of one hop is closed before the next
begins.
"""

from ..check.failure import TargetFailure
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass
from . import http1
from .dial import DialedConnection
from .egress import Egress
from .http_client import follow, joined, leads_to
from .http_exchange import HttpRequest, Stream


class Incoming:
    """Head of a response, and its body piece by piece. The caller closes it.

    `headers` has lower-case names, repeated ones joined. `received_bytes` counts the body as
    received.
    """

    def __init__(self, connection: DialedConnection, answer: http1.Http1Response) -> None:
        self.status = answer.status
        self.headers = joined(answer.headers)
        self._connection = connection
        self._answer = answer

    @property
    def received_bytes(self) -> int:
        return self._answer.received_bytes

    async def receive(self) -> bytes:
        """Returns the next bytes, empty at the end. Raises `TargetFailure` if it ends too early."""
        return await self._answer.receive()

    def close(self) -> None:
        """Closes the connection without waiting, so that it also works under cancellation."""
        self._connection.stream.socket.close()


async def listen(reach: Egress, request: HttpRequest, watch: Stopwatch) -> Incoming:
    """Returns the last response of the redirect chain, over HTTP/1.1.

    Raises: `TargetFailure`, as `fetch`.
    """
    for hops_left in range(request.redirects, -1, -1):
        incoming = await _hop(reach, request, watch)
        location = leads_to(request, incoming.status, incoming.headers)
        if not location:
            return incoming
        incoming.close()
        if hops_left:
            request = follow(request, incoming.status, location)
    raise TargetFailure(FailureClass.HTTP_STATUS, incoming.status)


async def _hop(reach: Egress, request: HttpRequest, watch: Stopwatch) -> Incoming:
    url = request.url
    connection = await reach.dial(url.host, url.port, watch, request.family)
    try:
        stream: Stream = connection.stream
        if url.scheme == "https":
            stream = await reach.encrypt(
                connection, url.host, watch, verify=request.verify, alpn=request.version.value
            )
        answer = await http1.begin(stream, request, watch, reach.user_agent)
    except BaseException:
        connection.stream.socket.close()
        raise
    return Incoming(connection, answer)
