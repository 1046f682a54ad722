"""How is a request named?"""

import uuid


def random_uuid() -> str:
    """A name that no other request has."""
    return uuid.uuid4().hex
