"""Objectives in the formats of other tools."""
