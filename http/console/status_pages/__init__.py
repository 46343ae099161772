"""Status pages as those who run them see them: the list, the editor, and what the public reads."""
