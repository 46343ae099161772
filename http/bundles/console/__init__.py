"""Screens of bundles and imports: a plan, its application, and files of other products."""
