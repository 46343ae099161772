"""How a bundle becomes what a project's monitors and services are."""
