"""Who is told: channels of projects, which monitors tell them, and webhooks of organizations."""
