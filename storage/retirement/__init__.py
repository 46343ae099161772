"""Storage of retirement: deletion, supersession and conversion of monitors and services."""
