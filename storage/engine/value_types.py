"""How values cross the border: instants are whole microseconds, integers bigint, JSON is msgspec.

A timestamptz comes back as an Instant, 'infinity' as FOREVER, '-infinity' as NEVER. A date comes
back as datetime.date, a uuid as uuid.UUID. Every integer is sent as bigint, whatever its size, so
that a statement keeps one plan and does not change its types as a number grows; where SQL wants an
integer (make_interval, an array's subscript), it says `::int`.
"""

from struct import Struct
from typing import Final

import msgspec
import psycopg
from psycopg import adapt, pq
from psycopg.abc import AdaptContext, Buffer
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


class _Types:
    """The context that psycopg copies for each connection."""

    connection = None

    def __init__(self) -> None:
        self.adapters = adapt.AdaptersMap(psycopg.adapters)


def _make() -> AdaptContext:
    types = _Types()
    types.adapters.register_loader("timestamptz", _InstantLoader)
    # The last that is registered is the one that is chosen: binary.
    types.adapters.register_dumper(int, Int8Dumper)
    types.adapters.register_dumper(int, Int8BinaryDumper)
    set_json_loads(msgspec.json.decode, types)
    return types


TYPES: Final = _make()
