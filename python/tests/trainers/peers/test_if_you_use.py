"""The page "If you use X": its blocks run with the real packages, and print what the page says."""

from __future__ import annotations

from pathlib import Path

import documented
import pytest

PAGE = "docs/guide/if-you-use.md"


@pytest.mark.parametrize("title", ["RM-Gallery", "OpenJudge", "verifiers", "math-verify"])
def test_the_page_prints_what_it_says(title: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # RM-Gallery writes its log there, and to standard output
    import rm_gallery  # noqa: F401
    from loguru import logger

    logger.remove()
    documented.run(PAGE, title)
