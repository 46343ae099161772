"""What is aimed at for a monitor and for a project, and who hears of a budget that burns."""
