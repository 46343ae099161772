"""Work for agents: what is handed out, and what came of it."""
