-- Language of the fixed words of a public page: of the reader (auto), or always the same.
alter table status_pages add column language text not null default 'auto'
  check (language in ('auto', 'en', 'de'));

-- Language of the form that asked for the subscription; null if it was asked for otherwise, or by
-- a process of the previous version.
alter table subscribers add column language text check (language in ('en', 'de'));
