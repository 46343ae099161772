"""A gRPC server with the standard health service, in a process of its own: its threads are not to
be counted as ours. Prints its ports, one a line: plain, TLS, with client certificates, no service.

    python grpc_server.py CERTIFICATE_CHAIN KEY CLIENT_AUTHORITY
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

# The answer for each requested service: a message, or a status.
MESSAGES = {
    "": b"\x08\x01",
    "open": b"\x12\x05later\x08\x01",
    "closed": b"\x08\x02",
    "unknown": b"",
    "unheard": b"\x08\x03",
    "new": b"\x08\x07",
    "broken": b"\x08",
    "long": b"\x12\xd0\x86\x03" + b"x" * 50_000,
    "longer": b"\x12\xf0\xa2\x04" + b"x" * 70_000,
}
STATUSES = {
    "guarded": grpc.StatusCode.UNAUTHENTICATED,
    "denied": grpc.StatusCode.PERMISSION_DENIED,
    "late": grpc.StatusCode.DEADLINE_EXCEEDED,
    "away": grpc.StatusCode.UNAVAILABLE,
}


stopping = threading.Event()


def check(request: bytes, context: grpc.ServicerContext) -> bytes:
    service = request[2:].decode() if request else ""
    if service == "silent":
        stopping.wait()
    if service in STATUSES:
        context.abort(STATUSES[service], "as it was asked")
    if service not in MESSAGES:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
    return MESSAGES[service]


def main(chain: bytes, key: bytes, authority: bytes) -> None:
    health = grpc.method_handlers_generic_handler(
        "grpc.health.v1.Health", {"Check": grpc.unary_unary_rpc_method_handler(check)}
    )
    server = grpc.server(ThreadPoolExecutor(8), handlers=[health])
    pair = [(key, chain)]
    plain = server.add_insecure_port("127.0.0.1:0")
    tls = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials(pair))
    asking = grpc.ssl_server_credentials(pair, authority, require_client_auth=True)
    mutual = server.add_secure_port("127.0.0.1:0", asking)
    server.start()
    bare = grpc.server(ThreadPoolExecutor(1))
    empty = bare.add_insecure_port("127.0.0.1:0")
    bare.start()
    sys.stdout.write(f"{plain}\n{tls}\n{mutual}\n{empty}\n")
    sys.stdout.flush()
    # Runs until the parent process closes its end of the pipe.
    sys.stdin.read()
    stopping.set()
    server.stop(None)
    bare.stop(None)


if __name__ == "__main__":
    main(*[Path(name).read_bytes() for name in sys.argv[1:4]])
