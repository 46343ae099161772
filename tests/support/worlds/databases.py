"""Databases of the tests: created from a template, lent to one test after another, and dropped.

A database that a test returns gets the rows and sequences of its template again. One whose tables,
functions or settings the test changed is dropped instead. LEADLINE_FRESH_DATABASES=1 creates a new
database for each test.
"""

import os
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import psycopg
import trio
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.worlds.warm_connections import WarmConnections

# Deleted rows stay in the files until a vacuum, and the next tests read past them.
_MOST_LOANS = 200
_IS_FRESH = os.environ.get("LEADLINE_FRESH_DATABASES") == "1"

# `kept` has a copy of the rows and sequences of the template. The event triggers note a change of
# the schema, which `restore` does not undo.
_KEEP = """
create schema kept;
create table kept.schema_changes (command text not null);
create function kept.note_change() returns event_trigger
    language plpgsql security definer as $$
begin
    insert into kept.schema_changes values (tg_tag);
end $$;

create table kept.copies (original text, columns text);
do $$
declare
    original regclass;
    copied text;
    is_empty boolean;
begin
    for original in
        select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where c.relkind = 'r' and n.nspname = 'public'
    loop
        execute format('select not exists (select from only %s)', original) into is_empty;
        if not is_empty then
            select string_agg(quote_ident(attname), ', ' order by attnum) into copied
            from pg_attribute
            where attrelid = original and attnum > 0 and not attisdropped and attgenerated = '';
            execute format(
                'create table kept.%I as select %s from only %s', original::text, copied, original
            );
            insert into kept.copies values (original::text, copied);
        end if;
    end loop;
end $$;
create table kept.sequences as
    select s.oid::regclass::text as name, last_value, start_value
    from pg_sequences join pg_class s on s.relname = sequencename and s.relkind = 'S'
    where schemaname = 'public';

create function kept.restore(idle int[]) returns boolean language plpgsql as $$
declare
    one record;
begin
    perform pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and pid <> all(idle);
    if exists (select from kept.schema_changes) then
        return false;
    end if;
    -- No trigger fires, and no foreign key is checked.
    set local session_replication_role = replica;
    for one in
        select c.oid::regclass as name from pg_class c
        where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace
            and pg_relation_size(c.oid) > 0
    loop
        execute format('delete from only %s', one.name);
    end loop;
    for one in select * from kept.copies loop
        execute format(
            'insert into %s (%s) overriding system value select %s from kept.%I',
            one.original, one.columns, one.columns, one.original
        );
    end loop;
    perform setval(name::regclass, coalesce(last_value, start_value), last_value is not null)
    from kept.sequences;
    return true;
end $$;
create event trigger kept_changes on ddl_command_end execute function kept.note_change();
create event trigger kept_drops on sql_drop execute function kept.note_change();
"""


@dataclass
class _Loan:
    """One database with `kept`, the connection that restores it, and the number of loans."""

    dsn: str
    template: str
    connection: psycopg.Connection[Any]
    loans: int = 0


class Databases:
    """Makes and drops databases on the session's server, and lends those of templates."""

    _numbers = count()

    def __init__(self, server_dsn: str) -> None:
        self._server_dsn = server_dsn
        self._admin = psycopg.connect(
            server_dsn, autocommit=True, options="-c statement_timeout=30s"
        )
        self._keeping: set[str] = set()
        self._free: dict[str, list[_Loan]] = defaultdict(list)
        self._lent: dict[str, _Loan] = {}
        self.warm = WarmConnections()

    def make(self, template: str = "template0") -> str:
        """Returns the DSN of a new database."""
        name = f"leadline_test_{os.getpid()}_{next(self._numbers)}"
        # Copying files beats writing them through the WAL while they are few and small.
        self._admin.execute(f'create database "{name}" template "{template}" strategy file_copy')
        return make_conninfo(self._server_dsn, dbname=name)

    @contextmanager
    def made(
        self, template: str, fill: Callable[[str], Awaitable[object]], *, keep: bool = False
    ) -> Iterator[str]:
        """Yields the name of a clone of `template` into which `fill` has inserted its rows.

        Clones of a template with `keep` are lent again after they were given back.
        """
        dsn = self.make(template)
        trio.run(fill, dsn)
        name = self.name_of(dsn)
        if keep and not _IS_FRESH:
            with psycopg.connect(dsn) as connection:
                connection.execute(_KEEP)
            self._keeping.add(name)
        yield name
        for loan in self._free.pop(name, []):
            self._end(loan)
        self.drop(dsn)

    def lend(self, template: str) -> str:
        """Returns the DSN of a database that is equal to `template`, until `give_back`."""
        if template not in self._keeping:
            return self.make(template)
        free = self._free[template]
        if free:
            loan = free.pop()
        else:
            dsn = self.make(template)
            loan = _Loan(dsn, template, psycopg.connect(dsn, autocommit=True))
        loan.loans += 1
        self.warm.allow(loan.dsn)
        self._lent[loan.dsn] = loan
        return loan.dsn

    def give_back(self, dsn: str) -> None:
        loan = self._lent.pop(dsn, None)
        if loan is None:
            self.drop(dsn)
        elif loan.loans < _MOST_LOANS and self._is_restored(loan):
            self._free[loan.template].append(loan)
        else:
            self._end(loan)

    def _is_restored(self, loan: _Loan) -> bool:
        try:
            restored = loan.connection.execute(
                "select kept.restore(%s::int[])", [self.warm.backends(loan.dsn)]
            ).fetchone()
        except psycopg.OperationalError:
            # The test ended all connections, or the server.
            return False
        return restored == (True,)

    def _end(self, loan: _Loan) -> None:
        self.warm.end(loan.dsn)
        loan.connection.close()
        self.drop(loan.dsn)

    def drop(self, dsn: str) -> None:
        self._admin.execute(f'drop database if exists "{self.name_of(dsn)}" with (force)')

    @staticmethod
    def name_of(dsn: str) -> str:
        return str(conninfo_to_dict(dsn)["dbname"])

    def close(self) -> None:
        self._admin.close()
