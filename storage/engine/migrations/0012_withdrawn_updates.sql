-- Undo of a public update.

-- The number of the update that this one withdraws. Null for every other update.
alter table incident_updates add column withdraws integer;
