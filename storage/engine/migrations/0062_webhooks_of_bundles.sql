-- A webhook of a bundle is signed with a secret of its project in place of an own one. A process of
-- the previous version cannot sign with it, and cannot delete a secret that signs.
alter table webhooks alter column secret_ciphertext drop not null;
alter table webhooks add column secret integer;
alter table webhooks add constraint webhooks_secret_fkey
  foreign key (org, secret) references project_secrets (org, id);
alter table webhooks add constraint webhooks_signs
  check (num_nonnulls(secret_ciphertext, secret) = 1);
create index webhooks_secret on webhooks (org, secret) where secret is not null;
create index webhooks_project on webhooks (org, project) where project is not null;
