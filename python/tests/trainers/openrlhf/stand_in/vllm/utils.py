"""The names of requests."""

import uuid


def random_uuid() -> str:
    """A name that no other request has."""
    return uuid.uuid4().hex
