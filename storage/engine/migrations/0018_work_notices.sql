-- Processes wait for work instead of polling for it. A write that gives a loop work tells all
-- processes, as the payload, which kind of work it is (storage/scheduling/rules/work.py). No
-- trigger is on a table that every result writes: commits with a notification are serialized.
create function tell_work() returns trigger language plpgsql as $$
begin
  perform pg_notify('leadline_work', tg_argv[0]);
  return null;
end $$;

create trigger status_changes_tell after insert on status_changes
  for each statement execute function tell_work('alerts');
create trigger outages_tell after update of next_check_at on outages
  for each row when (new.next_check_at < coalesce(old.next_check_at, 'infinity'))
  execute function tell_work('alerts');
create trigger incidents_tell_new after insert on incidents
  for each row when (new.escalate_at is not null) execute function tell_work('alerts');
create trigger incidents_tell after update of escalate_at on incidents
  for each row when (new.escalate_at < coalesce(old.escalate_at, 'infinity'))
  execute function tell_work('alerts');

create trigger service_alerting_tell_new after insert on service_alerting
  for each statement execute function tell_work('evaluations');
create trigger service_alerting_tell after update of due_at on service_alerting
  for each row when (new.due_at < old.due_at) execute function tell_work('evaluations');
create trigger burn_rules_tell after insert on burn_rules
  for each statement execute function tell_work('evaluations');

create trigger outbox_tell_new after insert on outbox
  for each statement execute function tell_work('deliveries');
create trigger outbox_tell after update of status on outbox
  for each row when (old.status = 'dead' and new.status = 'pending')
  execute function tell_work('deliveries');
create trigger reset_requests_tell after insert on reset_requests
  for each statement execute function tell_work('resets');
create trigger invitations_tell_new after insert on invitations
  for each statement execute function tell_work('invitations');
create trigger invitations_tell after update of mail_due_at on invitations
  for each row when (new.mail_due_at < coalesce(old.mail_due_at, 'infinity'))
  execute function tell_work('invitations');
create trigger operations_tell after insert on operations
  for each statement execute function tell_work('operations');

create trigger jobs_tell after insert on jobs
  for each statement execute function tell_work('jobs');
create trigger check_tests_tell after insert on check_tests
  for each statement execute function tell_work('jobs');
create trigger composite_wakeups_tell after insert on composite_wakeups
  for each statement execute function tell_work('composites');
create trigger services_tell after insert on services
  for each statement execute function tell_work('services');

create trigger schedule_edits_tell after insert on schedule_edits
  for each statement execute function tell_work('schedule');
create trigger maintenances_tell after insert or update of ends_at, cancel_effective_at
  on maintenances for each statement execute function tell_work('schedule');
create trigger monitors_tell after insert or update of updated_at on monitors
  for each statement execute function tell_work('definitions');
create trigger project_secrets_tell after insert or update or delete on project_secrets
  for each statement execute function tell_work('definitions');
