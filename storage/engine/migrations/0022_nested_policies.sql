-- A step can name another policy, whose steps follow from there.
alter table escalation_targets add column nested integer;
alter table escalation_targets add foreign key (org, nested)
  references escalation_policies (org, id) deferrable initially deferred;
alter table escalation_targets drop constraint escalation_targets_check,
  add constraint escalation_targets_check check (num_nonnulls(channel, schedule, nested) = 1);
create index escalation_targets_nested on escalation_targets (org, nested)
  where nested is not null;
