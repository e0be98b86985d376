"""Strings that are too long to be copied in one step of an event loop."""

from collections.abc import Generator


def join_parts() -> Generator[str | None, str | None, None]:
    """Take the parts of a string, one per `send`; an empty one yields the string."""
    text = ""
    while part := (yield None):
        # A string that only a local variable holds grows where it is: CPython copies nothing.
        text += part
    yield text
