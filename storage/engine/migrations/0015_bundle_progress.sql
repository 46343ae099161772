-- Progress of bundles that are applied, and the differences of applied revisions.

-- Newest written objects and two samples of the number of written objects, as JSON.
alter table operations add column progress text;
-- The changes of the revision as JSON, without documents and secrets. Null for revisions from before,
-- and for all except the newest of a bundle.
alter table bundle_revisions add column changes text;
