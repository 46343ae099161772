"""Owns the truth: rules decide, tables hold, views show, transactions change."""
