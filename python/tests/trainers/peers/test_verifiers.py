"""The table "What changes if you replace math_verify" of the guide, with math-verify itself."""

from __future__ import annotations

import re

import documented
from math_verify import parse, verify

PAGE = documented.ROOT / "docs/guide/verifiers.md"


def test_math_verify_says_what_the_table_says() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## What changes if you replace math_verify")[2]
    rows = re.findall(r"^\|[^|]*\| `([^|]*)` \| `([^|]*)` \| (\w+) \| \w+ \|$", text, re.M)
    assert len(rows) > 12
    said = [(gold, answer, str(verify(parse(gold), parse(answer)))) for gold, answer, _ in rows]
    assert said == rows
