"""Conversion of values between Python and PostgreSQL.

A timestamptz is read as an Instant in whole microseconds, 'infinity' as FOREVER, '-infinity' as
NEVER. A date is read as datetime.date, a uuid as uuid.UUID, JSON through msgspec. Every integer is
sent as bigint, so that a statement has one plan and one set of types for all values. SQL that needs
an integer (make_interval, an array subscript) casts with `::int`.
"""

from struct import Struct
from typing import Any, Final

import msgspec
import psycopg
from psycopg import adapt, pq
from psycopg.abc import AdaptContext, Buffer
from psycopg.types.array import ListDumper
from psycopg.types.json import set_json_loads
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from ..core.instant import Instant

FOREVER: Final = Instant(2**63 - 1)
NEVER: Final = Instant(-(2**63))

_read_int8 = Struct("!q").unpack
# PostgreSQL counts microseconds from 2000-01-01T00:00:00Z.
_POSTGRES_EPOCH_US: Final = 946_684_800_000_000


class _InstantLoader(adapt.Loader):
    format = pq.Format.BINARY

    def load(self, data: Buffer) -> Instant:
        (count,) = _read_int8(data)
        if count in (FOREVER, NEVER):
            return Instant(count)
        return Instant(count + _POSTGRES_EPOCH_US)


class _ListDumper(ListDumper):
    """Writes a list of integers in one step. psycopg writes them one by one, which takes five times
    as long for the keys of 2 000 monitors."""

    def dump(self, obj: list[Any]) -> Buffer | None:
        if obj and set(map(type, obj)) == {int}:
            return f"{{{','.join(map(str, obj))}}}".encode()
        return super().dump(obj)


class _Types:
    """Adapters that psycopg copies for each connection."""

    connection = None

    def __init__(self) -> None:
        self.adapters = adapt.AdaptersMap(psycopg.adapters)


def _make() -> AdaptContext:
    types = _Types()
    types.adapters.register_loader("timestamptz", _InstantLoader)
    # psycopg prefers the adapter that is registered last: the binary one.
    types.adapters.register_dumper(int, Int8Dumper)
    types.adapters.register_dumper(int, Int8BinaryDumper)
    types.adapters.register_dumper(list, _ListDumper)
    set_json_loads(msgspec.json.decode, types)
    return types


TYPES: Final = _make()
