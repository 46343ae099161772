"""SQL that locks and writes, a family of tables a file; no file here imports another."""
