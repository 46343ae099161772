"""What operators announce during a chaos run, and who reads it: incidents with public updates,
changes of the service, readers of the status page, and subscribers by mail.
"""

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from threading import Event
from typing import Any

from tests.support.processes.daemon_process import Refusal

from .announcements_verifier import (
    Announced,
    Mail,
    PageRead,
    verify_changes,
    verify_mails,
    verify_page,
    verify_updates,
)
from .installation import Installation
from .verifier import text_of

SUBSCRIBERS = ("ada@example.com", "grace@example.com", "radia@example.com")
SLUG = "chaos"
STATUSES = ("identified", "monitoring", "resolved")
UPDATE_SECONDS, PAUSE_SECONDS, READ_SECONDS, CHANGE_SECONDS = 6.0, 3.0, 0.5, 8.0
ANSWER_SECONDS = 60.0
CONFIRM_SECONDS = 60.0
# A mail that the server did not accept is tried again after at most so long.
DELIVERED_SECONDS = 600.0
_TOKEN = re.compile(r"/status/confirm/(\S+)")


@dataclass
class Announcements:
    """What was announced, with the answers, and what readers got."""

    installation: Installation
    announced: list[Announced] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    reads: list[PageRead] = field(default_factory=list)
    failed_reads: int = 0
    refused: list[str] = field(default_factory=list)
    # Instants of the acknowledgements, by the text of an update and the name of a change.
    posted: dict[str, str] = field(default_factory=dict)

    def subscribe(self) -> None:
        """Creates the status page and confirms the subscriptions, before any fault."""
        found = self.installation
        body = {"slug": SLUG, "title": "Chaos", "project_id": found.project}
        found.api("POST", f"/organizations/{found.organization}/status-pages", body)
        for address in SUBSCRIBERS:
            path = f"/public/status-pages/{SLUG}/subscribers"
            found.api("POST", path, {"email": address})
        waiting = set(SUBSCRIBERS)
        latest = time.monotonic() + CONFIRM_SECONDS
        while waiting:
            assert time.monotonic() < latest, f"no request to confirm for {waiting}"
            time.sleep(0.2)
            for mail in mails_of(found):
                token = _TOKEN.search(mail.text)
                if mail.to in waiting and token is not None:
                    found.api("POST", f"/public/subscriptions/{token[1]}/confirm")
                    waiting.remove(mail.to)

    def announce(self, ended: Event) -> None:
        """Opens one incident after the other, each with an update for each of STATUSES."""
        number = 0
        while not ended.wait(PAUSE_SECONDS):
            number += 1
            title = f"notice-{number}"
            text = f"{title}.0"
            path = f"/projects/{self.installation.project}/incidents"
            made = self._post(path, {"title": title, "impact": "minor", "body": text})
            if made is None:
                continue
            one = Announced(made["id"], title, [text], time.time())
            self.announced.append(one)
            for step, status in enumerate(STATUSES, start=1):
                if not ended.wait(UPDATE_SECONDS):
                    self._update(one, f"{title}.{step}", status)

    def _update(self, one: Announced, text: str, status: str) -> None:
        body = {"status": status, "body": text, "public": True}
        if status == "resolved":
            one.ended_at = time.time()
        if self._post(f"/incidents/{one.identifier}/updates", body) is None:
            one.unclear.add(text)
        else:
            one.texts.append(text)

    def record_changes(self, ended: Event) -> None:
        found = self.installation
        path = f"/projects/{found.project}/services/{found.service}/changes"
        number = 0
        while not ended.wait(CHANGE_SECONDS):
            number += 1
            name = f"build-{number}"
            body = {"kind": "deploy", "phase": "succeeded", "source": "ci", "external_id": name}
            if self._post(path, body) is not None:
                self.changes.append(name)

    def read_page(self, ended: Event) -> None:
        for process in cycle(self.installation.named("api")):
            if ended.wait(READ_SECONDS):
                return
            asked_at = time.time()
            url = f"{process.url}/api/v1/public/status-pages/{SLUG}"
            try:
                with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as answer:
                    page = json.load(answer)
            except (OSError, http.client.HTTPException):
                self.failed_reads += 1
                continue
            titles = frozenset(incident["title"] for incident in page["active_incidents"])
            self.reads.append(PageRead(asked_at, time.time(), titles))

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        """Returns the acknowledgement of one request to one process, or None."""
        processes = self.installation.named("api")
        process = processes[int(time.time()) % len(processes)]
        process.cookie = self.installation.cookie
        try:
            made = process.api("POST", path, body)
        except Refusal as refusal:
            self.refused.append(f"{path}: {refusal.status}")
        except (OSError, http.client.HTTPException) as error:
            self.refused.append(f"{path}: {type(error).__name__}")
        else:
            self.posted[str(body.get("body") or body.get("external_id"))] = text_of(time.time())
            return made
        return None

    def verify(self, since: float) -> list[str]:
        """Verifies the mails once all were delivered, or at the latest after DELIVERED_SECONDS."""
        found = self.installation
        violations: list[str] = []
        for one in self.announced:
            stored = found.api("GET", f"/incidents/{one.identifier}/updates")
            stored.sort(key=lambda update: update["seq"])
            violations += verify_updates(one, [update["body"] for update in stored])
        violations += verify_page(self.announced, self.reads)
        violations += verify_changes(self.changes, self._stored_changes(since))
        latest = time.time() + DELIVERED_SECONDS
        while True:
            wrong = verify_mails(self.announced, list(SUBSCRIBERS), mails_of(found))
            if not wrong or time.time() > latest:
                return violations + wrong
            time.sleep(5)

    def _stored_changes(self, since: float) -> list[dict[str, Any]]:
        found = self.installation
        path = f"/projects/{found.project}/services/{found.service}/changes"
        span = f"from={text_of(since - 60)}&to={text_of(time.time())}&limit=200"
        groups: list[dict[str, Any]] = []
        cursor = ""
        while True:
            page = found.api("GET", f"{path}?{span}{cursor and f'&cursor={cursor}'}")
            groups += page["items"]
            if not page["next_cursor"]:
                return groups
            cursor = page["next_cursor"]

    def report(self) -> dict[str, Any]:
        mails = mails_of(self.installation)
        return {
            "incidents": len(self.announced),
            "updates": sum(len(one.texts) for one in self.announced),
            "changes": len(self.changes),
            "page_reads": len(self.reads),
            "failed_page_reads": self.failed_reads,
            "mails": len(mails),
            "repeated_mails": len(mails) - len({(mail.to, mail.text) for mail in mails}),
            "refused": self.refused[:10],
            "acknowledged_at": self.posted,
        }


def mails_of(found: Installation) -> list[Mail]:
    lines = (Path(found.folder) / "mails.log").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [Mail(record["at"], record["to"], record["text"]) for record in records]
