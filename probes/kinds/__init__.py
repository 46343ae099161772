"""The protocols, a file each, all with the same signature; a file is loaded at its first need.

A new kind is a new file here with `SPEC` and, where something is probed, `probe` (see kind.py), and
a line in `FILES`.
"""
