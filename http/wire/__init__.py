"""What a route is written with: route, context, errors, cursors, permits."""
