"""Building blocks of routes: route, context, errors, cursors, permits."""
