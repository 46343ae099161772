"""The only way out: resolve once, check the address, connect to that very address."""
