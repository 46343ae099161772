"""Rows of an export as Parquet, in row groups of bounded memory. Needs pyarrow."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, BinaryIO, Final

from ..api_client import NoResponse

PARQUET: Final = "parquet"
GROUP_ROWS: Final = 20_000
_MISSING: Final = "Parquet needs pyarrow: install leadline[parquet]"


class ParquetRows:
    """Writes rows with the given fields, whose types are the words of `_type`."""

    def __init__(self, out: BinaryIO, types: Mapping[str, str]) -> None:
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise NoResponse(_MISSING) from None
        self._arrow = pyarrow
        self._types = types
        self._schema = pyarrow.schema([(name, self._type(word)) for name, word in types.items()])
        self._writer = pyarrow.parquet.ParquetWriter(out, self._schema, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self.count = 0

    def begin(self) -> None:
        """Does nothing: the writer has begun the file."""

    def write(self, row: dict[str, Any]) -> None:
        self._rows.append({name: self._value(row, name) for name in self._types})
        self.count += 1
        if len(self._rows) == GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        """Writes the rest and the footer."""
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._rows:
            table = self._arrow.Table.from_pylist(self._rows, schema=self._schema)
            self._writer.write_table(table, row_group_size=GROUP_ROWS)
            self._rows.clear()

    def _value(self, row: Mapping[str, Any], name: str) -> Any:
        value = row.get(name)
        if self._types[name] == "instant" and value is not None:
            return datetime.fromisoformat(value)
        return value

    def _type(self, word: str) -> Any:
        return {
            "instant": self._arrow.timestamp("us", tz="UTC"),
            "text": self._arrow.string(),
            "texts": self._arrow.list_(self._arrow.string()),
            "flag": self._arrow.bool_(),
            "number": self._arrow.int64(),
        }[word]
