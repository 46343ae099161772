"""Probes, one module per protocol with the same signature, imported on first use.

A new monitor type is a new module here with `SPEC` and, if it is probed, `probe` (see
`probe_kind`), and an entry in `registry.FILES`.
"""
