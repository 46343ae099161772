-- Loops ask often which monitors were edited, and whether a job is one of an asynchronous canary,
-- which few installations have. Without these indexes each question reads all monitors.
create index monitors_edited on monitors (shard, updated_at);
create index monitors_canary on monitors (org, id) where type = 'async_canary';
