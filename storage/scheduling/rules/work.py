"""Kinds of work that loops wait for. Triggers of the tables name them in notifications."""

from enum import StrEnum


class Work(StrEnum):
    """Work that another process, or the passing of time, can give to a loop."""

    DELIVERIES = "deliveries"
    RESETS = "resets"
    INVITATIONS = "invitations"
    ALERTS = "alerts"
    EVALUATIONS = "evaluations"
    SEALS = "seals"
    SERVICES = "services"
    REPAIRS = "repairs"
    COMPOSITES = "composites"
    OPERATIONS = "operations"
    JOBS = "jobs"
    CANARIES = "canaries"
    # Changed windows or maintenance; due when a maintenance ends.
    SCHEDULE = "schedule"
    # Changed checks or secrets. Their revision is compared, so no instant makes them due.
    DEFINITIONS = "definitions"
