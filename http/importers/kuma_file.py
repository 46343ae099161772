"""Files of Uptime Kuma: the backup of version 1 (JSON), and the database of version 2 (SQLite)."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from .import_result import CannotImport
from .json_file import VALUES_MOST, BadJson, read_json
from .yaml_file import TEXT_MOST

_SQLITE: Final = b"SQLite format 3\x00"
# A database is read within this many steps of SQLite, about ten seconds.
_STEP: Final = 10_000
_STEPS_MOST: Final = 50_000
_VALUE_MOST: Final = 1 << 20
# A view or a virtual table can have rows without end. The names of this table need not be true.
_OTHER_THAN_TABLES: Final = """
select 1 from sqlite_master where sql is not null and sql not like 'create table %'
  and sql not like 'create index %' and sql not like 'create unique index %'
  and sql not like 'create trigger %'
"""
_TABLES: Final = ("monitor", "monitor_tag", "tag")
# A longer one is refused like this part of it.
_TAG_LONGEST: Final = 200


def read_kuma_file(path: Path) -> dict[str, Any]:
    """Returns the document, whose monitorList is a list or a mapping of mappings.

    Raises:
        CannotImport.
    """
    with path.open("rb") as file:
        is_database = file.read(len(_SQLITE)) == _SQLITE
    return {"monitorList": _of_database(path)} if is_database else _of_backup(path)


def _of_backup(path: Path) -> dict[str, Any]:
    try:
        document = read_json(path.read_bytes())
        monitors = document["monitorList"]
    except BadJson as error:
        raise CannotImport(f"is no backup of Uptime Kuma: it {error}") from error
    except (KeyError, TypeError) as error:
        raise CannotImport("is no backup of Uptime Kuma: it has no monitorList") from error
    listed = list(monitors.values()) if isinstance(monitors, dict) else monitors
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise CannotImport("is no backup of Uptime Kuma: its monitorList is no list")
    return dict(document)


def _of_database(path: Path) -> list[dict[str, Any]]:
    """Reads a database that a stranger can have made: no view, no unbounded work or value."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            steps = iter(range(_STEPS_MOST))
            database.set_progress_handler(lambda: next(steps, None) is None, _STEP)
            database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_MOST)
            database.execute("pragma trusted_schema = off")
            _expect_plain_tables(database)
            database.row_factory = sqlite3.Row
            rows = _bounded(database, "select * from monitor order by id")
            tags = _tags(
                _bounded(database, "select monitor_id, tag_id, value from monitor_tag"),
                _bounded(database, "select id, name from tag"),
            )
    except sqlite3.Error as error:
        raise CannotImport(f"is no database of Uptime Kuma: {error}") from error
    for row in rows:
        codes = row.pop("accepted_statuscodes_json", None)
        try:
            row["accepted_statuscodes"] = read_json(codes) if codes else []
        except BadJson:
            row["accepted_statuscodes"] = [codes]
        row["tags"] = tags.get(row["id"], [])
    return rows


def _expect_plain_tables(database: sqlite3.Connection) -> None:
    """Refuses what SQLite would compute, such as a generated column of a megabyte in each row."""
    has_computed = database.execute(_OTHER_THAN_TABLES).fetchone() is not None
    for table in _TABLES:
        columns = database.execute(f"pragma table_xinfo({table})").fetchall()
        has_computed = has_computed or any(hidden for *_, hidden in columns)
    if has_computed:
        rule = "it has a view, a virtual table or a computed column"
        raise CannotImport(f"is no database of Uptime Kuma: {rule}")


def _bounded(database: sqlite3.Connection, statement: str) -> list[dict[str, Any]]:
    """Returns the rows. A file can contain the same page many times."""
    rows: list[dict[str, Any]] = []
    values = characters = 0
    for row in database.execute(statement):
        values += len(row)
        characters += sum(len(cell) for cell in row if isinstance(cell, str | bytes))
        if values > VALUES_MOST or characters > TEXT_MOST:
            rule = f"has more than {VALUES_MOST} values or {TEXT_MOST} characters in one table"
            raise CannotImport(rule)
        rows.append(dict(row))
    return rows


def _tags(
    used: list[dict[str, Any]], defined: list[dict[str, Any]]
) -> dict[object, list[dict[str, Any]]]:
    """Returns the tags of each monitor."""
    names = {tag["id"]: tag["name"] for tag in defined}
    found: dict[object, list[dict[str, Any]]] = {}
    for one in used:
        if one["tag_id"] in names:
            value = one["value"]
            shown = {
                "name": str(names[one["tag_id"]])[:_TAG_LONGEST],
                "value": value if value is None else str(value)[:_TAG_LONGEST],
            }
            found.setdefault(one["monitor_id"], []).append(shown)
    return found
