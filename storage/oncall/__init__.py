"""Storage of on-call: schedules, overrides and escalation policies."""
