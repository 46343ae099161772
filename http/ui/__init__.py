"""What a screen is written with: templates, formatting, form helpers, static files."""
