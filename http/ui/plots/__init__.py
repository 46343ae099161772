"""SVG plots."""
