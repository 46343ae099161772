"""Route table, request pipeline, app, ASGI middleware, OpenAPI, Hypercorn."""
