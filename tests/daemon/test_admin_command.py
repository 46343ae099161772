"""The operator of the machine restores the access of a user who lost password and second factor."""

import base64
import subprocess
import time

import pytest

from leadline.storage.accounts.rules.totp import code_of, step_at
from leadline.storage.core.instant import Instant
from tests.support.processes.daemon_process import LEADLINE, Daemon, Refusal, daemon


def admin(leadline: Daemon, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [LEADLINE, "admin", *arguments],
        env=leadline.environment,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.soak
def test_a_lost_second_factor_and_a_lost_password() -> None:
    with daemon() as leadline:
        leadline.start()
        leadline.sign_in()
        enrolled = leadline.api("POST", "/me/totp/enroll")
        _enable(leadline, base64.b32decode(enrolled["secret"]))
        body = {"username": "admin@localhost", "password": leadline.password}
        with pytest.raises(Refusal, match="totp_required"):
            leadline.raw("POST", "/auth/local/login", body)
        leadline.stop()

        code, said_ = admin(leadline, "remove-second-factor", "nobody@localhost")
        assert (code, "no account has this e-mail address" in said_) == (1, True)
        code, said_ = admin(leadline, "remove-second-factor", "Admin@localhost")
        assert (code, said_.strip()) == (0, "removed the second factor of Admin@localhost")
        code, said_ = admin(leadline, "reset-password", "admin@localhost")
        assert code == 0
        leadline.password = said_.partition("Password: ")[2].strip()
        leadline.start()
        leadline.cookie = ""
        leadline.sign_in()
        assert leadline.api("GET", "/me")["totp_enabled"] is False


def _enable(leadline: Daemon, secret: bytes) -> None:
    """Enables the second factor by the clock of this machine, which the daemon also uses. Repeated,
    because a step can end during the request."""
    for _ in range(3):
        code = code_of(secret, step_at(Instant(time.time_ns() // 1_000)))
        try:
            leadline.api("POST", "/me/totp/enable", {"code": code})
        except Refusal:
            continue
        return
    raise AssertionError("no code was taken")
