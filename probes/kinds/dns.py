"""DNS probe: one question to a resolver. Without conditions any record of its type is up.

The meaning of silence depends on the resolver. A resolver that the monitor names is the target, so
its silence is DOWN. This host's resolver is only a means. Its silence or SERVFAIL is DOWN if it
answers for the root, else unknown.
"""

from functools import partial
from ipaddress import ip_address

import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.rdtypes.txtbase
import dns.reversename

from ..check.check import Check
from ..check.condition_evaluation import MISSING, ProbeValues
from ..check.failure import TargetFailure
from ..check.monitor_spec import Config, Field, FieldType, MonitorType, Spec, SpecFault, TargetForm
from ..check.observation import Observation
from ..check.phase_timer import Stopwatch
from ..check.result import FailureClass, ProbePhase
from ..check.target import BadTarget, Url, read_host, read_host_port, read_url
from ..net.dns_client import RECORDS_ON_LOOP_MOST
from ..net.dns_exchange import (
    MESSAGE_BYTES_MOST,
    answer_to,
    ask_nameservers,
    by_datagram,
    by_stream,
    cut_short,
)
from ..net.egress import Egress
from ..net.http_client import HttpRequest, Version, fetch

RECORD_TYPES = (
    *("A", "AAAA", "CAA", "CNAME", "DNSKEY", "DS", "HTTPS", "MX"),
    *("NS", "PTR", "SOA", "SRV", "TLSA", "TXT"),
)
PORTS = {"udp": 53, "tcp": 53, "dot": 853, "doh": 443}
DOH_PATH = "/dns-query"
DOH_TYPE = "application/dns-message"
# Record types with only names and numbers, which compare case-insensitively (RFC 4343).
_NAMES = frozenset({"CNAME", "MX", "NS", "PTR", "SOA", "SRV"})


def _rule(target: str, config: Config) -> list[SpecFault]:
    faults = []
    transport, resolver = str(config["transport"]), str(config.get("resolver", ""))
    if resolver:
        try:
            read_resolver(resolver, transport)
        except BadTarget as bad:
            faults.append(SpecFault("config.resolver", str(bad)))
    elif transport in ("dot", "doh"):
        faults.append(SpecFault("config.resolver", f"is required when transport is {transport}"))
    if _is_address(target) and config["record_type"] != "PTR":
        faults.append(SpecFault("target", "is an address, which has only PTR records"))
    return faults


SPEC = Spec(
    type=MonitorType.DNS,
    help="Asks a resolver. Without conditions any record of the type is up.",
    target=TargetForm.NAME,
    fields=(
        Field(
            name="record_type",
            type=FieldType.CHOICE,
            help="Record type of the query. For PTR the target can be an address.",
            default="A",
            choices=RECORD_TYPES,
        ),
        Field(
            name="resolver",
            type=FieldType.TEXT,
            help="Resolver: host or host:port, for doh also a URL; default: that of the host. "
            "The silence of one named here is a failure.",
        ),
        Field(
            name="transport",
            type=FieldType.CHOICE,
            help="Protocol of the query; dot and doh need a resolver.",
            default="udp",
            choices=tuple(PORTS),
        ),
    ),
    placeholders=frozenset({"STATUS", "RESULT", "RESPONSE_TIME", "CONNECTED"}),
    rule=_rule,
)


async def probe(check: Check, reach: Egress, watch: Stopwatch) -> Observation:
    kind = check.text("record_type") or "A"
    name, rdtype = _name(check.host), dns.rdatatype.from_text(kind)
    query = dns.message.make_query(name, rdtype)
    resolver, transport = check.text("resolver"), check.text("transport") or "udp"
    if resolver:
        message = await _ask_named(query, read_resolver(resolver, transport), reach, watch, check)
    else:
        message = await ask_nameservers(query, transport, reach, watch)
    rcode = int(message.rcode())
    values = await _values(message, kind, reach)
    # A condition on the rcode may expect a code that is a failure otherwise.
    failure = None if values and rcode == dns.rcode.NOERROR else FailureClass.DNS_ERROR
    if failure and not check.wants("STATUS"):
        raise TargetFailure(failure, rcode)
    result = "\n".join(values) if values else MISSING
    return Observation(
        ProbeValues(status=rcode, result=result, connected=True), code=rcode, failure=failure
    )


def read_resolver(text: str, transport: str) -> Url:
    """Parses the resolver as a URL, of which only DoH uses the path.

    Raises: `BadTarget` if it is invalid.
    """
    if text.startswith("https://") and transport == "doh":
        return read_url(text, ("https",))
    if text.startswith("[") or text.count(":") == 1:
        bare = text.endswith("]")
        host, port = read_host_port(f"{text}:{PORTS[transport]}" if bare else text)
    else:
        host, port = read_host(text), PORTS[transport]
    return Url("https", host, port, DOH_PATH)


# A resolver that the monitor names.


async def _ask_named(
    query: dns.message.QueryMessage, resolver: Url, reach: Egress, watch: Stopwatch, check: Check
) -> dns.message.Message:
    transport = check.text("transport")
    if transport == "doh":
        return await _by_web(query, resolver, reach, watch)
    if transport == "dot":
        return await _by_tcp(query, resolver, reach, watch, tls=True)
    if transport != "tcp":
        sock = await reach.dial_datagram(resolver.host, resolver.port, watch)
        with sock:
            watch.begin(ProbePhase.FIRST_BYTE)
            message = await by_datagram(sock, query, reach, watch)
        if not cut_short(message):
            return message
    return await _by_tcp(query, resolver, reach, watch, tls=False)


async def _by_tcp(
    query: dns.message.QueryMessage, resolver: Url, reach: Egress, watch: Stopwatch, *, tls: bool
) -> dns.message.Message:
    connection = await reach.dial(resolver.host, resolver.port, watch)
    try:
        if tls:
            wrapped = await reach.encrypt(connection, resolver.host, watch, alpn=("dot",))
            watch.begin(ProbePhase.FIRST_BYTE)
            return await by_stream(wrapped, query, reach, watch)
        watch.begin(ProbePhase.FIRST_BYTE)
        return await by_stream(connection.stream, query, reach, watch)
    finally:
        connection.stream.socket.close()


async def _by_web(
    query: dns.message.QueryMessage, resolver: Url, reach: Egress, watch: Stopwatch
) -> dns.message.Message:
    """Sends the message as the body of a POST with id 0 (RFC 8484)."""
    query.id = 0
    request = HttpRequest(
        method="POST",
        url=resolver,
        headers=(("content-type", DOH_TYPE), ("accept", DOH_TYPE)),
        body=query.to_wire(),
        redirects=0,
        # Many DoH servers support only HTTP/2.
        version=Version.ANY,
        body_bytes_most=MESSAGE_BYTES_MOST,
    )
    response = await fetch(reach, request, watch)
    if response.status != 200:
        raise TargetFailure(FailureClass.HTTP_STATUS, response.status)
    if not response.whole:
        raise TargetFailure(FailureClass.RESPONSE_TOO_LARGE)
    if response.headers.get("content-type", "").partition(";")[0].strip().lower() != DOH_TYPE:
        raise TargetFailure(FailureClass.PROTOCOL_ERROR)
    return await answer_to(query, response.body, reach)


# Names and record values.


def _name(host: str) -> dns.name.Name:
    if _is_address(host):
        return dns.reversename.from_address(host)
    try:
        return dns.name.from_text(host)
    except dns.exception.DNSException:
        raise TargetFailure(FailureClass.DNS_ERROR) from None


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


async def _values(message: dns.message.Message, kind: str, reach: Egress) -> list[str]:
    if sum(len(records) for records in message.answer) > RECORDS_ON_LOOP_MOST:
        return await reach.in_thread_alone(partial(_read_values, message, kind))
    return _read_values(message, kind)


def _read_values(message: dns.message.Message, kind: str) -> list[str]:
    """Returns the records at the end of the CNAMEs, sorted, as their order is arbitrary."""
    assert isinstance(message, dns.message.QueryMessage)
    try:
        answer = message.resolve_chaining().answer
    except dns.exception.DNSException:
        return []
    return sorted(_spelled(record, kind) for record in answer) if answer else []


def _spelled(record: dns.rdata.Rdata, kind: str) -> str:
    """Returns a record as in a zone file, without final dots.

    The strings of a TXT record are joined (RFC 7208).
    """
    if isinstance(record, dns.rdtypes.txtbase.TXTBase):
        return b"".join(record.strings).decode("utf-8", "replace")
    if kind not in _NAMES:
        return record.to_text()
    return " ".join(w.removesuffix(".") or "." for w in record.to_text().lower().split())
