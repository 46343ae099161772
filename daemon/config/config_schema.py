"""Schema of the configuration: sections with defaults and bounds, and cross-field checks."""

import base64
import binascii
import ipaddress
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from ...probes.check.target import BadTarget, read_url
from ...probes.oidc.oidc_settings import OidcSettings, sign_on_faults
from ...probes.senders.mail_settings import MailSettings, base_url_fault, mail_faults
from ...probes.senders.public_address import base_path_fault, outside_base_path

Count = Annotated[int, Meta(ge=1, le=100_000)]
_REGION_NAME = "^[a-z0-9][a-z0-9-]{0,62}$"
_SLUG = "^[a-z][a-z0-9-]{0,62}$"
_PROVIDED = r"^([a-z][a-z0-9-]{0,62}/([a-z][a-z0-9-]{0,62}|\*))?$"
_PROJECT = r"^([a-z][a-z0-9-]{0,62}/[a-z][a-z0-9-]{0,62})?$"
RegionName = Annotated[str, Meta(pattern=_REGION_NAME)]
# An agent token is a secret that must be hard to guess; a random one has 43 characters.
AGENT_TOKEN_SHORTEST: Final = 16
# API processes on one address. Each has limits, caches and connections of its own.
PROCESSES_MOST: Final = 16
# Of the 60 connections of the embedded PostgreSQL; backups and commands use the others.
EMBEDDED_CONNECTIONS_MOST: Final = 52
Port = Annotated[int, Meta(ge=1, le=65_535)]


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class ServerConfig(Section, frozen=True):
    listen: str = "127.0.0.1:8080"
    # Processes that answer on `listen`.
    processes: Annotated[int, Meta(ge=1, le=PROCESSES_MOST)] = 1
    # Address for health and metrics of a process that serves no API; empty disables them.
    ops_listen: str = ""
    trusted_proxies: tuple[str, ...] = ()
    # With `base_path`, its path is `base_path`.
    public_base_url: str = ""
    # Path prefix of the installation; empty at the root of its host.
    base_path: str = ""


class Log(Section, frozen=True):
    level: Annotated[str, Meta(pattern="^(debug|info|warning|error)$")] = "info"
    # auto: text on a terminal, otherwise JSON.
    format: Annotated[str, Meta(pattern="^(auto|json|text)$")] = "auto"


class Database(Section, frozen=True):
    dsn: str = ""
    listen_dsn: str = ""
    distributed: bool = False
    pool_size: Annotated[int, Meta(ge=4, le=100)] = 12


class Oidc(Section, frozen=True):
    enabled: bool = False
    issuer: str = ""
    client_id: str = ""
    client_secret: str = ""
    redirect_url: str = ""
    scopes: tuple[str, ...] = ("openid", "email", "profile")
    post_logout_url: str = ""
    button_label: str = ""
    bootstrap_admins: tuple[str, ...] = ()
    jwt_audience: str = ""


class Local(Section, frozen=True):
    enabled: bool = True
    min_password_length: Annotated[int, Meta(ge=8, le=128)] = 10
    login_rate_limit_per_minute: Annotated[int, Meta(ge=1, le=600)] = 10


class SessionConfig(Section, frozen=True):
    cookie_name: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] = "leadline_session"
    ttl_seconds: Annotated[int, Meta(ge=300, le=31_536_000)] = 604_800
    secure: bool = False


class ProberConfig(Section, frozen=True):
    regions: tuple[RegionName, ...] = ("core",)
    concurrency: Annotated[int, Meta(ge=1, le=2_000)] = 100
    allow_private_ips: bool = True
    deny_networks: tuple[str, ...] = ()
    connectivity_check: str = ""


class NotificationEgress(Section, frozen=True):
    allow_private_ips: bool = False


class Heartbeats(Section, frozen=True):
    retention_days: Annotated[int, Meta(ge=4, le=3_650)] = 30


class Ledger(Section, frozen=True):
    retention_days: Annotated[int, Meta(ge=4, le=3_650)] = 14


class History(Section, frozen=True):
    """Packed results. 0 packs no further day."""

    retention_days: Annotated[int, Meta(ge=0, le=3_650)] = 365


class Outbox(Section, frozen=True):
    max_attempts: Annotated[int, Meta(ge=1, le=1_000)] = 24


class Security(Section, frozen=True):
    encryption_key: str = ""
    previous_keys: tuple[str, ...] = ()
    admin_email: str = ""
    admin_password: str = ""


class MailConfig(Section, frozen=True):
    enabled: bool = False
    smtp_host: str = ""
    smtp_port: Port = 587
    smtp_username: str = ""
    smtp_password: str = ""
    from_: str = msgspec.field(default="", name="from")


class PullRegion(Section, frozen=True):
    name: str
    # Slugs of the organizations that the region is reserved for; empty for all organizations.
    organizations: tuple[str, ...] = ()


class PullAgent(Section, frozen=True):
    name: str
    region: str
    token: str


class Pull(Section, frozen=True):
    regions: tuple[PullRegion, ...] = ()
    token: str = ""
    agents: tuple[PullAgent, ...] = ()
    server_url: str = ""


class FileProvider(Section, frozen=True):
    """Directory of bundles.

    `project` is organization/project as slugs, organization/* for all its projects, or empty for
    any project. With `take_over`, its bundles become the owners of objects that people created.
    """

    directory: str
    project: Annotated[str, Meta(pattern=_PROVIDED)] = ""
    take_over: bool = False


class ProvidersConfig(Section, frozen=True):
    file: dict[str, FileProvider] = {}


class Gate(Section, frozen=True):
    evaluate_inflight_process: Count = 8
    evaluate_inflight_principal: Count = 2
    evaluate_rate_principal_per_minute: Count = 10
    evaluate_rate_process_per_minute: Count = 60
    decision_retention_days: Annotated[int, Meta(ge=1, le=3_650)] = 90


class ChangeConfig(Section, frozen=True):
    record_inflight_process: Count = 32
    record_rate_principal_per_minute: Count = 30
    record_rate_process_per_minute: Count = 300
    read_inflight_process: Count = 64


class BackupConfig(Section, frozen=True):
    """Settings of `leadline backup --schedule`, which keeps `keep` backups in `dir`."""

    dir: str = ""
    keep: Annotated[int, Meta(ge=1, le=1_000)] = 14
    passphrase_file: str = ""


class MetricsConfig(Section, frozen=True):
    """Metrics of single monitors: of at most `monitors` of them, 0 for none."""

    monitors: Annotated[int, Meta(ge=0, le=10_000)] = 0


class SelfMonitoring(Section, frozen=True):
    """`project` is organization/project as slugs. `heartbeat_url` is requested every minute."""

    project: Annotated[str, Meta(pattern=_PROJECT)] = ""
    heartbeat_url: str = ""


class Canary(Section, frozen=True):
    concurrency_per_region: Count = 4


class Settings(Section, frozen=True):
    data_dir: str = ""
    server: ServerConfig = ServerConfig()
    log: Log = Log()
    database: Database = Database()
    oidc: Oidc = Oidc()
    local: Local = Local()
    session: SessionConfig = SessionConfig()
    prober: ProberConfig = ProberConfig()
    notification_egress: NotificationEgress = NotificationEgress()
    heartbeats: Heartbeats = Heartbeats()
    ledger: Ledger = Ledger()
    history: History = History()
    outbox: Outbox = Outbox()
    security: Security = Security()
    mail: MailConfig = MailConfig()
    pull: Pull = Pull()
    providers: ProvidersConfig = ProvidersConfig()
    gate: Gate = Gate()
    change: ChangeConfig = ChangeConfig()
    canary: Canary = Canary()
    backup: BackupConfig = BackupConfig()
    metrics: MetricsConfig = MetricsConfig()
    self_monitoring: SelfMonitoring = SelfMonitoring()

    def faults(self, unread: Collection[str] = ()) -> list[str]:
        """Returns the faults that no single field shows, one line each, beginning with the key.

        `unread` are keys whose values do not fit their type and are replaced by the default. No
        fault is returned for them, and none of the rules that compare them with another key.
        """
        faults = [
            *_listen_faults("server.listen", self.server.listen),
            *_listen_faults("server.ops_listen", self.server.ops_listen),
            *_process_faults(self.server, self.database),
            *_network_faults("server.trusted_proxies", self.server.trusted_proxies),
            *_network_faults("prober.deny_networks", self.prober.deny_networks),
            *_endpoint_faults("prober.connectivity_check", self.prober.connectivity_check),
            *_url_faults("server.public_base_url", self.server.public_base_url),
            *_base_path_faults(self.server, self.oidc.redirect_url, unread),
            *_heartbeat_faults(self.self_monitoring.heartbeat_url),
            *_key_faults(self.security),
            *_backup_faults(self.backup),
            *_provider_faults(self.providers),
            *_pull_region_faults(self.pull.regions),
            *_pull_token_faults(self.pull),
            *([] if self.prober.regions else ["prober.regions: at least one is needed"]),
        ]
        if not _are_within(unread, "mail"):
            faults += _mail_faults(self.mail)
        if not _are_within(unread, "oidc", "server.public_base_url"):
            faults += _oidc_faults(self.oidc, self.server)
        administrator = ("security.admin_email", "security.admin_password")
        if not _are_within(unread, "security", *administrator, "local.min_password_length"):
            faults += _administrator_faults(self.security, self.local.min_password_length)
        return [fault for fault in faults if not _is_below(fault.partition(": ")[0], unread)]


def _are_within(unread: Collection[str], *keys: str) -> bool:
    """Returns whether one of `keys`, or a key below it, is unread."""
    return any(_is_below(one, keys) for one in unread)


def _is_below(key: str, keys: Collection[str]) -> bool:
    """Returns whether a key is one of `keys`, or below it."""
    return any(key == one or key.startswith((f"{one}.", f"{one}[")) for one in keys)


def split_address(text: str) -> tuple[str, int]:
    """Splits host:port, with an IPv6 host in brackets. Raises: ValueError for other text."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise ValueError("must be host:port")
    return host.strip("[]"), int(port)


def _listen_faults(key: str, text: str) -> list[str]:
    if not text and key == "server.ops_listen":
        return []
    try:
        split_address(text)
    except ValueError as error:
        return [f"{key}: {error}"]
    return []


def _process_faults(server: ServerConfig, database: Database) -> list[str]:
    """Checks that the connections of all processes fit the embedded PostgreSQL."""
    # Each process has its pool and a connection that listens.
    connections = server.processes * (database.pool_size + 1)
    if database.dsn or connections <= EMBEDDED_CONNECTIONS_MOST:
        return []
    most = EMBEDDED_CONNECTIONS_MOST // (database.pool_size + 1)
    return [
        f"server.processes: must be at most {most} with the embedded PostgreSQL and"
        f" database.pool_size = {database.pool_size}"
    ]


def _endpoint_faults(key: str, text: str) -> list[str]:
    """Checks an address to connect to, which has a host and a port."""
    if not text:
        return []
    try:
        host, port = split_address(text)
    except ValueError as error:
        return [f"{key}: {error}"]
    return [] if host and port else [f"{key}: must be host:port"]


def _network_faults(key: str, networks: tuple[str, ...]) -> list[str]:
    faults = []
    for text in networks:
        try:
            ipaddress.ip_network(text, strict=False)
        except ValueError:
            faults.append(f"{key}: {text!r} is not a CIDR network")
    return faults


def _url_faults(key: str, text: str) -> list[str]:
    fault = base_url_fault(text)
    return [] if fault is None else [f"{key}: {fault}"]


def _base_path_faults(
    server: ServerConfig, redirect_url: str, unread: Collection[str]
) -> list[str]:
    """Checks the path prefix, and that the public addresses have it."""
    fault = base_path_fault(server.base_path)
    if fault is not None:
        return [f"server.base_path: {fault}"]
    if _are_within(unread, "server.base_path", "server.public_base_url"):
        return []
    found = []
    fault = outside_base_path(server.public_base_url, server.base_path)
    if fault is not None:
        found.append(f"server.public_base_url: {fault}")
    if redirect_url and f"{server.base_path}/" not in redirect_url:
        rule = f"must contain the path of server.base_path, {server.base_path}"
        found.append(f"oidc.redirect_url: {rule}")
    return found


def _heartbeat_faults(url: str) -> list[str]:
    if not url:
        return []
    try:
        read_url(url)
    except BadTarget as fault:
        return [f"self_monitoring.heartbeat_url: {fault}"]
    return []


def _key_faults(security: Security) -> list[str]:
    faults = []
    named = [("security.encryption_key", security.encryption_key)]
    named += [("security.previous_keys", key) for key in security.previous_keys]
    for key, text in named:
        if not text:
            continue
        try:
            if len(base64.b64decode(text, validate=True)) != 32:
                faults.append(f"{key}: must be 32 bytes in base64")
        except binascii.Error:
            faults.append(f"{key}: must be 32 bytes in base64")
    return faults


def _backup_faults(backup: BackupConfig) -> list[str]:
    return [
        f"backup.{name}: must be an absolute path"
        for name, path in (("dir", backup.dir), ("passphrase_file", backup.passphrase_file))
        if path and not Path(path).is_absolute()
    ]


def _provider_faults(providers: ProvidersConfig) -> list[str]:
    found = []
    for name, one in providers.file.items():
        if re.fullmatch(_SLUG, name) is None or name == "api":
            fault = f"must match {_SLUG} and not be api, the provider of bundles over HTTP"
            found.append(f"providers.file.{name}: {fault}")
        if not Path(one.directory).is_absolute():
            found.append(f"providers.file.{name}.directory: must be an absolute path")
    return found


def mail_settings_of(mail: MailConfig) -> MailSettings:
    """Returns the mail settings without the public address of this installation."""
    return MailSettings(
        enabled=mail.enabled,
        smtp_host=mail.smtp_host,
        smtp_port=mail.smtp_port,
        smtp_username=mail.smtp_username,
        smtp_password=mail.smtp_password,
        from_=mail.from_,
    )


def _mail_faults(mail: MailConfig) -> list[str]:
    return [f"mail.{field}: {rule}" for field, rule in mail_faults(mail_settings_of(mail))]


def sign_on_of(oidc: Oidc, server: ServerConfig) -> OidcSettings:
    """Returns the OIDC settings; the default redirect URL is below the public base URL."""
    base = server.public_base_url.rstrip("/")
    return OidcSettings(
        enabled=oidc.enabled,
        issuer=oidc.issuer,
        client_id=oidc.client_id,
        client_secret=oidc.client_secret,
        redirect_url=oidc.redirect_url or (f"{base}/auth/callback" if base else ""),
        scopes=oidc.scopes,
        post_logout_url=oidc.post_logout_url,
        button_label=oidc.button_label,
        bootstrap_admins=oidc.bootstrap_admins,
    )


def _oidc_faults(oidc: Oidc, server: ServerConfig) -> list[str]:
    """Returns the faults of single sign-on, none if it is not enabled.

    Its redirect URL follows from `server.public_base_url`, which may be http.
    """
    if not oidc.enabled:
        return []
    return [f"oidc.{field}: {rule}" for field, rule in sign_on_faults(sign_on_of(oidc, server))]


def _pull_region_faults(regions: Sequence[PullRegion]) -> list[str]:
    faults = []
    seen: set[str] = set()
    for n, region in enumerate(regions):
        key = f"pull.regions[{n}]"
        if not re.fullmatch(_REGION_NAME, region.name):
            faults.append(f"{key}.name: must match {_REGION_NAME}")
        if region.name in seen:
            faults.append(f"{key}.name: {region.name!r} is named twice")
        seen.add(region.name)
        if not all(re.fullmatch(_SLUG, slug) for slug in region.organizations):
            faults.append(f"{key}.organizations: must be slugs of organizations")
    return faults


def _pull_token_faults(pull: Pull) -> list[str]:
    """Checks that each token identifies one agent; no fault contains the token itself."""
    faults = []
    names: set[str] = set()
    tokens = {pull.token} - {""}
    if pull.token and len(pull.token) < AGENT_TOKEN_SHORTEST:
        faults.append(f"pull.token: at least {AGENT_TOKEN_SHORTEST} characters")
    for n, agent in enumerate(pull.agents):
        key = f"pull.agents[{n}]"
        if not agent.name.strip():
            faults.append(f"{key}.name: must not be blank")
        elif agent.name in names:
            faults.append(f"{key}.name: {agent.name!r} is named twice")
        if not re.fullmatch(_REGION_NAME, agent.region):
            faults.append(f"{key}.region: must match {_REGION_NAME}")
        if len(agent.token) < AGENT_TOKEN_SHORTEST:
            faults.append(f"{key}.token: at least {AGENT_TOKEN_SHORTEST} characters")
        elif agent.token in tokens:
            faults.append(f"{key}.token: must be unique")
        names.add(agent.name)
        tokens.add(agent.token)
    return faults


def _administrator_faults(security: Security, shortest: int) -> list[str]:
    if bool(security.admin_email) != bool(security.admin_password):
        return ["security: admin_email and admin_password belong together"]
    if security.admin_password and len(security.admin_password) < shortest:
        return [f"security.admin_password: at least {shortest} characters"]
    return []
