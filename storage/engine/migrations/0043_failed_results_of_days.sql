-- Failed results of each counted day, so that plots of a year decode no piece. Null in the days that an
-- earlier version counted: a reader counts them in the pieces that have a failure.
alter table latency_days add column bad integer;

-- A process of an earlier version, which can run beside this one, updates a day without `bad`: the
-- number would be the old one. This version replaces the row of a day and never updates it.
create function forget_failed_results() returns trigger language plpgsql as $$
begin
  new.bad := null;
  return new;
end $$;
create trigger latency_days_updated before update on latency_days
  for each row execute function forget_failed_results();
