"""Storage of maintenance: announced windows, series and previews."""
