-- Days that earlier versions counted without `bad` lie in weeks that are merged. The merger reads all
-- weeks again, and counts those days. It leaves pieces that are merged as they are.
update packing set merged_through = 'epoch', merged_org = 0, merged_monitor = 0
where exists (select from latency_days where bad is null);
