-- An agent receives only tests of types that it can run. Tests of the previous version have no type.
alter table check_tests add column type text;
