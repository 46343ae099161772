"""An agent: checks made on another box, without a store, for a server that it asks."""
