"""The changes of a service beside what was measured: what came before what, and nothing more."""
