"""Loops that send e-mails to people, apart from the outbox."""

from .invitation_mailer import InvitationMailer as InvitationMailer
from .oncall_mailer import OnCallMailer as OnCallMailer
from .password_reset_mailer import PasswordResetMailer as PasswordResetMailer
