"""CPU per check, the probe alone: plain HTTP, HTTPS and TCP against a real nginx, in flight by 20.

`bench_probes()` returns figures; run this file's module to print them. Only this process's CPU is
counted, since the target's is not ours.
"""

import json
import resource
import socket
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio
import trustme

from leadline.probes.check import Check, make_check
from leadline.probes.reach.outward import Reach, make_reach
from leadline.probes.reach.policy import probe_policy
from leadline.probes.result import Outcome
from leadline.probes.run import run

IN_FLIGHT = 20

NGINX = """
daemon off; master_process off; pid {dir}/pid; error_log {dir}/error.log crit;
worker_rlimit_nofile 4096; events {{ worker_connections 1024; }}
http {{
  access_log off; client_body_temp_path {dir}; proxy_temp_path {dir}; fastcgi_temp_path {dir};
  uwsgi_temp_path {dir}; scgi_temp_path {dir};
  server {{
    listen 127.0.0.1:{plain}; listen 127.0.0.1:{tls} ssl;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem;
    default_type application/json; location / {{ return 200 '{{"status": "UP"}}'; }}
  }}
}}
"""


def now() -> int:
    return time.time_ns() // 1_000


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@asynccontextmanager
async def nginx() -> AsyncIterator[tuple[int, int, Path]]:
    """(plain port, TLS port, the authority's file) of a running nginx."""
    authority = trustme.CA()
    plain, tls = free_port(), free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate = authority.issue_cert("127.0.0.1")
        certificate.private_key_pem.write_to_path(str(folder / "key.pem"))
        certificate.cert_chain_pems[0].write_to_path(str(folder / "cert.pem"))
        authority.cert_pem.write_to_path(str(folder / "ca.pem"))
        (folder / "nginx.conf").write_text(NGINX.format(dir=folder, plain=plain, tls=tls))
        command = ["nginx", "-c", str(folder / "nginx.conf"), "-p", name]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(trio.run_process, command, check=False))
            with trio.fail_after(10):
                await until_it_answers(plain)
            yield plain, tls, folder / "ca.pem"
            nursery.cancel_scope.cancel()


async def until_it_answers(port: int) -> None:
    while True:
        try:
            stream = await trio.open_tcp_stream("127.0.0.1", port)
        except OSError:
            await trio.sleep(0.02)
        else:
            await stream.aclose()
            return


async def cpu_ms(check: Check, reach: Reach, runs: int) -> dict[str, float]:
    """CPU and wall milliseconds a run, with the loop kept busy by `IN_FLIGHT` runs."""
    left = runs
    worst = 0

    async def worker() -> None:
        nonlocal left, worst
        while left > 0:
            left -= 1
            result = await run(check, reach, now)
            assert result.outcome is Outcome.UP, result
            worst = max(worst, result.latency_ms)

    def used() -> float:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime

    cpu, wall = used(), time.perf_counter()
    async with trio.open_nursery() as nursery:
        for _ in range(IN_FLIGHT):
            nursery.start_soon(worker)
    cpu, wall = used() - cpu, time.perf_counter() - wall
    return {
        "cpu_ms": round(cpu * 1_000 / runs, 3),
        "wall_ms": round(wall * 1_000 / runs, 3),
        "worst_latency_ms": worst,
    }


async def bench_probes(runs: int = 1_000) -> dict[str, dict[str, float]]:
    """Milliseconds a check, by kind; the lowest of three rounds, as others share the machine."""
    async with nginx() as (plain, tls, authority):
        reach = make_reach(probe_policy(), authorities=authority)
        url = f"http://127.0.0.1:{plain}/"
        body = ["[STATUS] == 200", "[BODY].status == UP"]
        checks = {
            "http": make_check("http", url, "GET", {}, []),
            "http_conditions": make_check("http", url, "GET", {}, body),
            "https": make_check("http", f"https://127.0.0.1:{tls}/", "GET", {}, []),
            "tcp": make_check("tcp", f"127.0.0.1:{plain}", None, {}, []),
        }
        figures = {}
        async with trio.open_nursery() as nursery:
            await nursery.start(reach.lag.watch)
            for name, check in checks.items():
                await cpu_ms(check, reach, 50)
                rounds = [await cpu_ms(check, reach, runs) for _ in range(3)]
                figures[name] = min(rounds, key=lambda figure: figure["cpu_ms"])
            nursery.cancel_scope.cancel()
    return figures


if __name__ == "__main__":
    print(json.dumps(trio.run(bench_probes), indent=2))  # noqa: T201
