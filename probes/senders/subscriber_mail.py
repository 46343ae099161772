"""E-mail to a subscriber, with unsubscribe links for people and mail programs.

Source: RFC 2369, RFC 8058. All messages of an incident are one thread, by their references and by
their constant subject.
"""

from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, parseaddr
from functools import partial
from html import escape
from typing import Final

import trio

from ..check.failure import LocalFailure, TargetFailure
from .email import hand_over
from .message import one_line
from .send_result import SEND_SECONDS, NotDelivered, OutgoingMail, SendContext, SendFailure, renamed

SUBJECT_LONGEST: Final = 200
# Limit of a header line (RFC 5322, 2.1.1).
LINE_LONGEST: Final = 998


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriberMail:
    """Content of one e-mail.

    `uid` is the same for all attempts. `thread` is the same for all messages of one incident, or
    empty. `paragraphs` may contain line breaks. A POST to `leave` ends the subscription, and
    `leave_page` is the page for people. Both are empty before the subscription is confirmed.
    """

    uid: str
    to: str
    subject: str
    paragraphs: tuple[str, ...]
    link: str
    link_text: str
    thread: str = ""
    leave: str = ""
    leave_page: str = ""


def written(letter: SubscriberMail, mail: OutgoingMail, now_us: int) -> EmailMessage:
    domain = parseaddr(mail.sender)[1].rpartition("@")[2] or "localhost"
    found = EmailMessage()
    found["From"] = mail.sender
    found["To"] = letter.to
    found["Subject"] = one_line(letter.subject, SUBJECT_LONGEST) or "Leadline"
    found["Date"] = formatdate(now_us / 1_000_000)
    found["Message-ID"] = f"<{letter.uid}@{domain}>"
    if letter.thread:
        root = f"<{letter.thread}@{domain}>"
        found["In-Reply-To"] = root
        found["References"] = root
    if letter.leave:
        found["List-Unsubscribe"] = f"<{letter.leave}>"
        found["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        found["Precedence"] = "list"
    found["Auto-Submitted"] = "auto-generated"
    found.set_content(_text(letter))
    found.add_alternative(_html(letter), subtype="html")
    # The default line limit would fold a longer URL into encoded words, which mail programs do not
    # read.
    found.policy = found.policy.clone(max_line_length=LINE_LONGEST)
    return found


def _text(letter: SubscriberMail) -> str:
    parts = [*letter.paragraphs]
    if letter.link:
        parts.append(f"{letter.link_text}: {letter.link}")
    if letter.leave_page:
        parts.append(f"-- \nUnsubscribe: {letter.leave_page}")
    return "\n\n".join(_plain(part) for part in parts) + "\n"


def _html(letter: SubscriberMail) -> str:
    parts = [
        "<p>" + escape(_plain(part)).replace("\n", "<br>\n") + "</p>" for part in letter.paragraphs
    ]
    if letter.link:
        parts.append(f'<p><a href="{escape(letter.link)}">{escape(letter.link_text)}</a></p>')
    if letter.leave_page:
        leave = escape(letter.leave_page)
        parts.append(f'<hr><p><small><a href="{leave}">Unsubscribe</a></small></p>')
    return f"<html><body>{''.join(parts)}</body></html>\n"


def _plain(text: str) -> str:
    """Returns the lines of the text without control characters."""
    return "\n".join(one_line(line, len(line) or 1) for line in text.splitlines())


async def send_letter(letter: SubscriberMail, means: SendContext) -> None:
    """Makes one attempt, within `SEND_SECONDS`.

    Raises: `NotDelivered` with the reason, and whether to retry.
    """
    if means.mail is None:
        raise NotDelivered(SendFailure.RETRY, "mail_unavailable")
    mail = means.mail
    with trio.move_on_after(SEND_SECONDS):
        try:
            whole = await mail.reach.in_thread(partial(written, letter, mail, means.now()))
            await hand_over(mail, whole, [letter.to])
        except (TargetFailure, LocalFailure) as failure:
            raise renamed(failure) from None
        return
    raise NotDelivered(SendFailure.RETRY, "timeout")
