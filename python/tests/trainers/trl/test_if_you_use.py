"""The section about TRL's own reward functions on the page "If you use X"."""

import documented


def test_the_page_prints_what_it_says() -> None:
    documented.run("docs/guide/if-you-use.md", "TRL functions")
