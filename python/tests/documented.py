"""The documentation as tests: runs the Python blocks of a section, and compares what they print with the block that follows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str, title: str) -> list[tuple[str, str]]:
    """The fenced blocks below one heading of second order, each with its language."""
    text = (ROOT / page).read_text(encoding="utf-8")
    _, found, rest = text.partition(f"\n## {title}\n")
    assert found, f"{page} has no section {title!r}"
    return BLOCK.findall(rest.split("\n## ")[0])


def run(page: str, title: str, **names: Any) -> dict[str, Any]:
    """Runs the Python blocks of a section, one after the other, and returns the names that they leave.

    A block of `text` after one of Python is what it prints. At least one must be there, so that something is compared.
    """
    names |= {"__name__": "documented"}
    printed, compared = None, 0
    for language, text in blocks(page, title):
        if language == "python":
            assert printed in (None, ""), f"{title}: {printed!r} is printed, and not shown"
            buffer = io.StringIO()
            with contextlib.redirect_stdout(buffer):
                exec(compile(text, f"<{page}: {title}>", "exec"), names)
            printed = buffer.getvalue()
        elif language == "text":
            assert printed == text, f"{title}: prints\n{printed}\nand not\n{text}"
            printed, compared = None, compared + 1
    assert compared and printed in (None, ""), f"{title}: what its blocks print is not shown"
    return names
