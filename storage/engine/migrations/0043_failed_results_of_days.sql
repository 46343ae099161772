-- Failed results of each counted day, so that plots of a year decode no piece. Null in the days that an
-- earlier version counted: a reader counts them in the pieces that have a failure.
alter table latency_days add column bad integer;
