"""Probes reach out; storage owns the truth (rules say how it may change, tables hold it, views
show it, transactions change it); http lets people ask; daemon keeps it all running."""
