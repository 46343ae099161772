"""Senders of notifications. `deliver` chooses the sender of a channel.

This file imports none of them: the configuration needs `mail_settings` alone.
"""
