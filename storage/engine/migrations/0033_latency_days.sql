-- Latencies of the good results of each packed day: percentiles, and counts by bucket. The buckets are those of
-- storage/results/rules/latency_sketch.py. A day without a row has few results, or was packed by an
-- earlier version. It is read from its pieces.
create table latency_days (
  org integer not null,
  monitor integer not null,
  day timestamptz not null,
  -- Good results. Without one, the percentiles are null.
  good integer not null,
  p50_ms integer,
  p95_ms integer,
  p99_ms integer,
  -- In ascending order.
  buckets smallint[] not null,
  counts integer[] not null,
  primary key (org, monitor, day)
);
create index latency_days_day on latency_days using brin (day);
