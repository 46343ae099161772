"""The form of what new monitors have where nobody says otherwise."""
