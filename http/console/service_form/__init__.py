"""Forms of services: what is declared, aimed at and depended on, and how they speak."""
