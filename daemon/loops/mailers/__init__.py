"""Loops that send e-mails to people apart from the outbox, or queue notices for subscribers."""

from .invitation_mailer import InvitationMailer as InvitationMailer
from .maintenance_teller import MaintenanceTeller as MaintenanceTeller
from .oncall_mailer import OnCallMailer as OnCallMailer
from .password_reset_mailer import PasswordResetMailer as PasswordResetMailer
