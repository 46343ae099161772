"""All outgoing connections: egress policy, resolver, TLS, HTTP and protocol sessions."""
