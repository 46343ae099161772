-- Whether the bundle of a managed service states its support hours. Otherwise people edit them.
alter table services add column hours_managed boolean not null default false;
