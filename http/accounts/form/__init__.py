"""Forms that the links in e-mails open: password reset and invitations."""
