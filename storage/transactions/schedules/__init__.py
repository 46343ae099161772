"""How what is due comes to be written before anything is run."""
