"""Plots as SVG, a file each: pure functions from what was measured to markup.

They share one manner: what is not known is hatched, nothing is drawn across a gap, each has a
sentence for those who do not see it, and presentation is by classes, since nothing may be inline.
"""
