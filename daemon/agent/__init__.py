"""Agent process: runs checks on another host, without a database, for its server."""
