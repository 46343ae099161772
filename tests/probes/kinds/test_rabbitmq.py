"""RabbitMQ checks against a local broker, with AMQP and with its management interface."""

import base64
import json
import os
import secrets
import shutil
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pytest
import trio
import trustme

from leadline.probes.check.check import validate
from leadline.probes.check.result import FailureClass, message
from leadline.probes.net.tls_contexts import TlsContexts
from tests.support.peers.leaks import leaves_nothing
from tests.support.peers.real_servers import HOST, open_folder, running, write_certificate
from tests.support.peers.servers import Names, Prober
from tests.support.processes.ports import free_port

PASSWORD = "canary-ü-" + secrets.token_hex(8)
WATCHER: dict[str, object] = {"username": "watcher", "password": PASSWORD}
# The broker reads its configuration file as Latin-1.
ADMIN = secrets.token_hex(8)
ODD = "grün & gut / %2F?"


def down(failure: FailureClass, host: str = HOST) -> str:
    return message(failure, host)


@dataclass(frozen=True)
class Rabbit:
    amqp: int
    amqps: int
    http: int
    https: int
    folder: Path

    def target(self, mode: str, *, tls: bool = False) -> str:
        plain, secure = (self.amqp, self.amqps) if mode == "amqp" else (self.http, self.https)
        return f"{HOST}:{secure if tls else plain}"

    def ask(self, method: str, path: str, **body: object) -> int:
        """Sends a request as the administrator and returns its status."""
        request = urllib.request.Request(
            f"http://{HOST}:{self.http}/api/{path}",
            json.dumps(body).encode() if body or method == "PUT" else None,
            {"content-type": "application/json"},
            method=method,
        )
        credential = base64.b64encode(f"root:{ADMIN}".encode()).decode()
        request.add_header("authorization", f"Basic {credential}")
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code


@contextmanager
def rabbit(folder: Path, authority: trustme.CA) -> Iterator[Rabbit]:
    chain, key = write_certificate(authority, folder, HOST)
    broker = Rabbit(free_port(), free_port(), free_port(), free_port(), folder)
    files = (f"certfile = {chain}", f"keyfile = {key}", f"cacertfile = {chain}")
    lines = [
        *(f"listeners.tcp.1 = {HOST}:{broker.amqp}", f"listeners.ssl.1 = {HOST}:{broker.amqps}"),
        *(f"management.tcp.ip = {HOST}", f"management.tcp.port = {broker.http}"),
        *(f"management.ssl.ip = {HOST}", f"management.ssl.port = {broker.https}"),
        *(f"ssl_options.{line}" for line in files),
        *(f"management.ssl.{line}" for line in files),
        *("ssl_options.verify = verify_none", "default_user = root", "log.console = true"),
        *(f"default_pass = {ADMIN}", "log.console.level = info", "log.file = false"),
        "collect_statistics_interval = 200",
    ]
    (folder / "rabbitmq.conf").write_text("\n".join(lines) + "\n")
    (folder / "enabled_plugins").write_text("[rabbitmq_management].\n")
    (folder / "none").write_text("")
    environment = {
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "RABBITMQ_NODENAME": f"{folder.name}@localhost",
        "RABBITMQ_MNESIA_BASE": str(folder / "mnesia"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_DIST_PORT": str(free_port()),
    }
    # The packaged wrapper would change the user; this script runs as the current user.
    own = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    command = [str(own) if own.exists() else str(shutil.which("rabbitmq-server"))]

    def ready() -> bool:
        try:
            return broker.ask("GET", "overview") == 200
        except OSError:
            return False

    with running(command, folder / "output", ready, env=environment, process_group=0) as process:
        try:
            _fill(broker)
            yield broker
        finally:
            # The data is not needed, so the broker is killed.
            os.killpg(process.pid, signal.SIGKILL)


def _fill(broker: Rabbit) -> None:
    put = partial(broker.ask, "PUT")
    everything = {"configure": "", "write": "", "read": ".*"}
    for status in (
        put("users/watcher", password=PASSWORD, tags="management"),
        put("users/colon%3Ain", password=PASSWORD, tags=""),
        put("users/stranger", password=PASSWORD, tags=""),
        put("vhosts/other"),
        put("vhosts/shut"),
        put("permissions/%2F/watcher", **everything),
        put("permissions/other/watcher", **everything),
        put("permissions/%2F/colon%3Ain", **everything),
        put("queues/%2F/jobs"),
        put("queues/%2F/empty"),
        put(f"queues/other/{quote(ODD, safe='')}"),
        put(f"queues/other/{'x' * 255}"),
    ):
        assert status == 201
    for _ in range(3):
        published = broker.ask(
            "POST",
            "exchanges/%2F/amq.default/publish",
            properties={},
            routing_key="jobs",
            payload="x",
            payload_encoding="string",
        )
        assert published == 200


@pytest.fixture(scope="module")
def broker(authority: trustme.CA) -> Iterator[Rabbit]:
    with open_folder() as folder, rabbit(folder, authority) as broker:
        yield broker


@pytest.mark.needs("rabbitmq-server")
async def test_a_login_is_up_and_a_queue_gives_its_ready_messages(
    prober: Prober, broker: Rabbit
) -> None:
    check = partial(prober.check, "rabbitmq", broker.target("amqp"), **WATCHER)
    for conditions, config, failure, code in (
        ([], {}, None, None),
        (["[CONNECTED] == true", "[IP] == 127.0.0.1"], {}, None, None),
        (["[RESULT] == 3"], {"queue": "jobs"}, None, None),
        (["[RESULT] < 3"], {"queue": "jobs"}, FailureClass.CONDITION_FAILED, None),
        (["[RESULT] == 0"], {"queue": "empty", "vhost": "/"}, None, None),
        (["[RESULT] == 0"], {"queue": ODD, "vhost": "other"}, None, None),
        (["[RESULT] == 0"], {"queue": "x" * 255, "vhost": "other"}, None, None),
        (["[RESULT] exists"], {}, FailureClass.CONDITION_FAILED, None),
        ([], {"queue": "missing"}, FailureClass.PROTOCOL_ERROR, 404),
        ([], {"queue": "jobs", "vhost": "other"}, FailureClass.PROTOCOL_ERROR, 404),
        ([], {"vhost": "missing"}, FailureClass.AUTH_FAILED, 530),
        ([], {"vhost": "shut"}, FailureClass.AUTH_FAILED, 530),
    ):
        result = await check(*conditions, **config)
        said = (down(failure) if failure else "", code)
        assert (result.msg, result.code) == said, (conditions, config)


@pytest.mark.needs("rabbitmq-server")
async def test_the_management_interface_gives_the_same_results(
    prober: Prober, broker: Rabbit
) -> None:
    check = partial(
        prober.check, "rabbitmq", broker.target("management"), mode="management", **WATCHER
    )
    # The broker updates its statistics periodically.
    with trio.fail_after(30):
        for wanted, place in (("3", {"queue": "jobs"}), ("0", {"queue": ODD, "vhost": "other"})):
            counted = partial(check, f"[RESULT] == {wanted}", **place)
            while (await counted()).msg:  # noqa: ASYNC110 another program sets no event
                await trio.sleep(0.05)
    for conditions, config, failure, code in (
        ([], {}, None, 200),
        (["[RESULT] == 3"], {}, None, 200),
        (["[RESULT] < 3"], {"queue": "jobs"}, FailureClass.CONDITION_FAILED, 200),
        (["[RESULT] == 0"], {"queue": "empty"}, None, 200),
        ([], {"queue": "missing"}, FailureClass.HTTP_STATUS, 404),
        ([], {"queue": "jobs", "vhost": "missing"}, FailureClass.HTTP_STATUS, 404),
        ([], {"queue": "jobs", "vhost": "shut"}, FailureClass.AUTH_FAILED, 401),
    ):
        result = await check(*conditions, **config)
        said = (down(failure) if failure else "", code)
        assert (result.msg, result.code) == said, (conditions, config)


@pytest.mark.needs("rabbitmq-server")
async def test_a_wrong_password_is_auth_failed(prober: Prober, broker: Rabbit) -> None:
    for mode, code in (("amqp", 403), ("management", 401)):
        right: dict[str, object] = {"password": PASSWORD}
        for user, config, secret, wrong in (
            ("watcher", right, {}, False),
            ("watcher", {"password_ref": "mq"}, {"password": PASSWORD}, False),
            ("watcher", {"password_ref": "mq"}, {"password": "wrong"}, True),
            ("watcher", {"password": "wrong"}, {}, True),
            ("nobody", right, {}, True),
        ):
            for tls in (False, True):
                target = broker.target(mode, tls=tls)
                given = {"mode": mode, "username": user, "tls": tls, **config}
                result = await prober.check("rabbitmq", target, secrets=secret, **given)
                assert result.msg == (down(FailureClass.AUTH_FAILED) if wrong else ""), given
                assert not wrong or result.code == code
                assert PASSWORD not in repr(result)
    plain = partial(prober.check, "rabbitmq", broker.target("amqp"), password=PASSWORD)
    assert (await plain(username="colon:in")).msg == ""
    assert (await plain(username="stranger")).code == 530
    management = broker.target("management")
    result = await prober.check(
        "rabbitmq", management, mode="management", username="stranger", password=PASSWORD
    )
    assert (result.msg, result.code) == (down(FailureClass.AUTH_FAILED), 401)


@pytest.mark.needs("rabbitmq-server")
async def test_certificate_expiry_is_known_with_tls(prober: Prober, broker: Rabbit) -> None:
    for mode in ("amqp", "management"):
        for tls, wanted, up in (
            (True, "[CERT_EXPIRY] > 24h", True),
            (True, "[CERT_EXPIRY] < 24h", False),
            (False, "[CERT_EXPIRY] > 24h", False),
        ):
            target = broker.target(mode, tls=tls)
            result = await prober.check("rabbitmq", target, wanted, mode=mode, tls=tls, **WATCHER)
            assert result.msg == ("" if up else down(FailureClass.CONDITION_FAILED)), (mode, wanted)


@pytest.mark.needs("rabbitmq-server")
async def test_tls_is_verified_unless_skipped(prober: Prober, broker: Rabbit, names: Names) -> None:
    names.records["mq.example", "A"] = [["127.0.0.1"]]
    doubting = prober.with_(contexts=TlsContexts())
    refused = FailureClass.TLS_ERROR
    for mode in ("amqp", "management"):
        target = broker.target(mode, tls=True)
        port = target.partition(":")[2]
        for asker, host, skip, failure in (
            (prober, HOST, False, None),
            (doubting, HOST, False, refused),
            (doubting, HOST, True, None),
            (prober, "mq.example", False, refused),
            (prober, "mq.example", True, None),
        ):
            result = await asker.check(
                "rabbitmq", f"{host}:{port}", mode=mode, tls=True, tls_skip_verify=skip, **WATCHER
            )
            assert result.msg == (down(failure, host) if failure else ""), (mode, host, skip)
        plain = broker.target(mode)
        result = await prober.check("rabbitmq", plain, mode=mode, tls=True, **WATCHER)
        assert result.msg == down(refused)


@pytest.mark.needs("rabbitmq-server")
async def test_each_session_ends_cleanly(prober: Prober, broker: Rabbit) -> None:
    for config in ({}, {"queue": "jobs"}, {"queue": "missing"}, {"vhost": "missing"}):
        await prober.check("rabbitmq", broker.target("amqp"), **WATCHER, **config)
    said = (broker.folder / "output").read_text()
    assert "user 'watcher' authenticated and granted access" in said
    assert "client unexpectedly closed" not in said
    assert "closed unexpectedly" not in said


@pytest.mark.needs("rabbitmq-server")
async def test_cancelled_runs_leave_nothing_open(prober: Prober, broker: Rabbit) -> None:
    for mode in ("amqp", "management"):
        for tls in (False, True):
            target = broker.target(mode, tls=tls)
            await leaves_nothing(
                partial(
                    prober.check, "rabbitmq", target, mode=mode, tls=tls, queue="jobs", **WATCHER
                )
            )


def test_invalid_definitions_are_refused() -> None:
    def faults(**config: object) -> list[str]:
        return [f.field for f in validate("rabbitmq", "mq.example:5672", None, config, [])]

    assert faults(**WATCHER) == []
    assert faults(**WATCHER, mode="management", vhost="a/b", queue=ODD, tls="true") == []
    assert faults() == ["config.username"]
    assert faults(username="x") == ["config.password"]
    assert faults(username="x", password="a", password_ref="b") == ["config.password"]
    assert faults(username="a:b", password="a") == []
    assert faults(username="a:b", password="a", mode="management") == ["config.username"]
    assert faults(**WATCHER, queue="x" * 255, vhost="x" * 255) == []
    assert faults(**WATCHER, queue="x" * 256) == ["config.queue"]
    assert faults(**WATCHER, queue="ü" * 128) == ["config.queue"]
    assert faults(**WATCHER, vhost="ü" * 128) == ["config.vhost"]
    assert faults(**WATCHER, mode="mqtt") == ["config.mode"]
