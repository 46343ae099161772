"""Message at the start of the daemon: address of the console and the first sign-in."""

import logging
import sys

from ..config.logs import write_line, writes_json
from ..config.roles import serves_console
from .first_start import InitialAdmin
from .wiring import Components

log = logging.getLogger("leadline.startup")


def print_ready(
    house: Components, address: str, founder: InitialAdmin | None, *, is_further: bool
) -> None:
    """Logs that the process is ready; prints how to sign in if it serves the console and is the
    first process on its address.

    The message is one line of a JSON log, and text otherwise. It ignores `log.level`, because a
    generated password is shown only here.
    """
    server = house.settings.server
    url = server.public_base_url or (f"http://{address}{server.base_path}" if address else "")
    log.info("ready", extra={"role": house.role.value, "url": url})
    if is_further or not serves_console(house.role):
        return
    if writes_json(house.settings.log):
        if founder is not None:
            _write_json(url, founder)
    elif founder is not None or sys.stderr.isatty():
        _write_text(url, founder)


def _write_json(url: str, founder: InitialAdmin) -> None:
    fields = {"url": url, "email": founder.email}
    if founder.password is not None:
        fields["password"] = founder.password
    write_line(log, " ".join([f"Leadline is running: {url}", *_sign_in(founder)]), fields)


def _write_text(url: str, founder: InitialAdmin | None) -> None:
    lines = ["", f"Leadline is running: {url}", *([] if founder is None else _sign_in(founder))]
    sys.stderr.write("\n".join([*lines, "", ""]))
    sys.stderr.flush()


def _sign_in(founder: InitialAdmin) -> list[str]:
    lines = [f"Sign in as {founder.email}"]
    if founder.password is not None:
        lines.append(f"with the password {founder.password}  (it is not shown again)")
    return lines
