"""Refusal: an expected error of a transaction, with a stable code and a field.

Raising it rolls the transaction back. Only the outermost layer converts it to a status.
"""


class Refused(Exception):
    """Expected error. `code` is the stable API code; `field` and `message` state the rule."""

    def __init__(self, code: str, field: str = "", message: str = "") -> None:
        super().__init__(code, field, message)
        self.code = code
        self.field = field
        self.message = message

    def __str__(self) -> str:
        if self.field and self.message:
            return f"{self.field}: {self.message}"
        return self.message or self.code


def expect(field: str, fault: str | None) -> None:
    """Raises Refused with the field if there is a fault."""
    if fault is not None:
        raise Refused("invalid", field, fault)


class Unavailable(Exception):
    """The database is temporarily unavailable. The only error that justifies a retry."""
