"""PostgreSQL: connection, pools, transaction, partitions, keyring, clock."""
