"""A refusal is an expected answer of a transaction: a stable code, and what field it means.

Raising it rolls the transaction back; only the edges turn it into a status.
"""


class Refused(Exception):
    """`code` is the stable word of the wire; `field` and `message` say what to mend."""

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
    """The store cannot answer just now; the one fault that is worth trying again."""
