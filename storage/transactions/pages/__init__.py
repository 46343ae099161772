"""Status pages are made and edited, and their components bound to what they show."""
