"""Every outward socket: egress policy, resolver, TLS, HTTP, protocol sessions."""
