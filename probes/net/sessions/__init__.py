"""Conversations of protocols on an open connection, one module per protocol."""
