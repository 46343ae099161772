"""Migrations after the baseline are additive: they drop, rename and retype no object."""

import re
from collections.abc import Iterator
from typing import Final

import pytest

from tests.house.sources import ROOT

FOLDER: Final = ROOT / "storage" / "engine" / "migrations"
_COMMENT: Final = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_REPLACED: Final = re.compile(r"\bdrop constraint (\w+)(?=.*\badd constraint \1\b)")
# Foreign keys of pieces: the pieces of an archived monitor outlive it. A process of the previous
# version neither writes nor reads pieces.
_DROPPED: Final = re.compile(r"\bdrop constraint packed_(?:heartbeats|runs)_org_monitor_fkey\b")
_FORBIDDEN: Final = {
    "drops": re.compile(r"\bdrop (?!not null\b|default\b)"),
    "renames": re.compile(r"\brename\b"),
    "changes a type": re.compile(r'\balter (?:column )?"?\w+"? (?:set data )?type\b'),
    "requires a value": re.compile(r"\bset not null\b"),
    "moves to a schema": re.compile(r"\bset schema\b"),
    "deletes rows": re.compile(r"\bdelete from\b|\btruncate (?!on\b)"),
}


def _violations(text: str) -> Iterator[str]:
    """Yields the removals of a migration, without those of `_DROPPED`.

    A constraint can be replaced by one of the same name.
    """
    plain = " ".join(_COMMENT.sub(" ", text).lower().split())
    plain = _DROPPED.sub("", _REPLACED.sub("", plain))
    for name, pattern in _FORBIDDEN.items():
        if pattern.search(plain):
            yield name


def test_migrations_after_the_baseline_are_additive() -> None:
    files = sorted(FOLDER.glob("*.sql"))
    assert files[0].name == "0001_baseline.sql"
    found = [(path.name, name) for path in files[1:] for name in _violations(path.read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("drop table jobs;", ["drops"]),
        ("alter table jobs\n  drop column reason;", ["drops"]),
        ("alter table jobs drop reason;", ["drops"]),
        ("alter table jobs drop constraint jobs_reason_check;", ["drops"]),
        ("drop index jobs_due; create index jobs_due on jobs (due_at);", ["drops"]),
        ("alter table jobs rename to work;", ["renames"]),
        ("alter table jobs rename column reason to why;", ["renames"]),
        ("alter table jobs alter column id type text;", ["changes a type"]),
        ("alter table jobs alter id set data type text;", ["changes a type"]),
        ('alter table burn_rules alter "window" type integer;', ["changes a type"]),
        ("alter table jobs alter holder set not null;", ["requires a value"]),
        ("alter table jobs set schema old;", ["moves to a schema"]),
        ("with gone as (delete from jobs returning id) select 1;", ["deletes rows"]),
        ("truncate table jobs;", ["deletes rows"]),
        # Additive.
        ("alter table jobs add column note text not null default '';", []),
        ("alter table jobs drop constraint a, add constraint a check (id > 0);", []),
        ("alter table jobs alter holder drop not null;", []),
        ("alter type role add value 'auditor';", []),
        (
            "create trigger kept before truncate on jobs execute function f();",
            [],
        ),
        ("create table notes (job bigint references jobs on delete cascade); -- drop", []),
        ("insert into notes select id from jobs; update jobs set revision = 1;", []),
    ],
)
def test_a_removal_is_found(text: str, found: list[str]) -> None:
    assert list(_violations(text)) == found
