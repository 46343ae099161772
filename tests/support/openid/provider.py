"""A real OpenID provider in its own process, and a user who signs in with its forms."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx
from joserfc.jwk import RSAKey

from tests.support.processes.ports import free_port

HERE = Path(__file__).parent
MODULES = HERE / "node_modules" / "oidc-provider"
CLIENT = "leadline"
SECRET = "secret of leadline: with %, + and a colon"
PEOPLE = {
    "ada": {"email": "ada@example.com", "email_verified": True, "name": "Ada"},
    "eve": {"email": "mara@example.com", "email_verified": True, "name": "Eve"},
    "liar": {"email": "boss@example.com", "email_verified": False, "name": "Liar"},
    "boss": {"email": "Boss@example.com", "email_verified": True, "name": "Boss"},
    "nobody": {},
    # The tests change their groups.
    "gus": {"email": "gus@example.com", "email_verified": True, "name": "Gus"},
}


def new_key(name: str) -> dict[str, Any]:
    key = RSAKey.generate_key(2_048, parameters={"kid": name, "use": "sig", "alg": "RS256"})
    return dict(key.as_dict(private=True))


@dataclass
class Provider:
    port: int = field(default_factory=free_port)
    redirect_uris: list[str] = field(
        default_factory=lambda: ["https://up.example.com/auth/callback"]
    )
    post_logout_uris: list[str] = field(default_factory=list)
    keys: list[dict[str, Any]] = field(default_factory=lambda: [new_key("first")])
    process: subprocess.Popen[str] | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        given = {
            "issuer": self.issuer,
            "port": self.port,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "redirect_uris": self.redirect_uris,
            "post_logout_uris": self.post_logout_uris,
            "keys": self.keys,
            "people": PEOPLE,
        }
        self.process = subprocess.Popen(
            ["node", str(HERE / "provider.mjs"), json.dumps(given)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == "listening"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def set_groups(self, person: str, groups: Any) -> None:
        """Sets the claim `groups` of a person, which UserInfo sends. None removes it."""
        answer = httpx.post(
            f"{self.issuer}/test/groups/{person}",
            content=json.dumps(groups),
            trust_env=False,
            timeout=30,
        )
        assert answer.status_code == 204, answer

    def sign_in(self, address: str, person: str, back: str) -> dict[str, str]:
        """Signs in and consents, and returns the parameters of the redirect."""
        with httpx.Client(trust_env=False, timeout=30) as browser:
            for _ in range(20):
                answer = browser.get(address)
                if answer.is_redirect:
                    address = urljoin(address, answer.headers["location"])
                else:
                    prompt = "login" if 'name="login"' in answer.text else "consent"
                    form = {"prompt": prompt, "login": person, "password": "any"}
                    answer = browser.post(_action(answer), data=form)
                    address = urljoin(address, answer.headers["location"])
                if address.startswith(back):
                    query = parse_qs(urlsplit(address).query)
                    return {name: values[0] for name, values in query.items()}
        raise AssertionError("it never came back")

    def client_token(self) -> str:
        """Returns a token of the client credentials grant."""
        answer = httpx.post(
            f"{self.issuer}/token",
            data={"grant_type": "client_credentials"},
            auth=("pipeline", "secret+of+the+pipeline"),
            trust_env=False,
            timeout=30,
        )
        return str(answer.json()["access_token"])


def _action(answer: httpx.Response) -> str:
    action = answer.text.partition('action="')[2].partition('"')[0]
    return urljoin(str(answer.url), action)


@contextmanager
def providing(**given: Any) -> Iterator[Provider]:
    provider = Provider(**given)
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()
