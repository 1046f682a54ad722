"""The form of a prompt of tokens."""


class TokensPrompt(dict):
    """Token ids by name."""
