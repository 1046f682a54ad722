"""How is a prompt of tokens written?"""


class TokensPrompt(dict):
    """Token ids by name."""
