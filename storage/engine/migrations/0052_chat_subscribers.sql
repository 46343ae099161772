-- Channels of Slack and Microsoft Teams subscribe to status pages by their webhook.
alter table subscribers
  drop constraint subscribers_kind_check,
  add constraint subscribers_kind_check check (kind in ('mail', 'webhook', 'slack', 'teams'));
