"""Says where to go and how to sign in, once, to whoever started the daemon."""

import logging
import sys

from .first_start import InitialAdmin
from .wiring import Components

log = logging.getLogger("leadline.startup")


def print_ready(house: Components, address: str, founder: InitialAdmin | None) -> None:
    """The password of a first start is written to the terminal and never to the log."""
    url = house.settings.server.public_base_url or (f"http://{address}" if address else "")
    log.info("ready", extra={"role": house.role.value, "url": url})
    if founder is None and not sys.stderr.isatty():
        return
    lines = ["", f"Leadline is running: {url}" if url else "Leadline is running."]
    if founder is not None:
        lines.append(f"Sign in as {founder.email}")
        if founder.password is not None:
            lines.append(f"with the password {founder.password}  (it is not shown again)")
    sys.stderr.write("\n".join([*lines, "", ""]))
    sys.stderr.flush()
