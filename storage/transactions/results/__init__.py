"""How a result comes to be stored: steady ones in one statement, the rest under a lock."""
