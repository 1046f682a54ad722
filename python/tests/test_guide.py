"""The guide to custom rewards and single rewards as tests: its blocks run, and print what stands below them."""

from __future__ import annotations

import documented
import plaudit
import pytest

PAGE = "docs/guide/python.md"
ADDRESS = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize("title", ["What a reward may return", "Functions of verl and TRL"])
def test_a_section(title: str):
    documented.run(PAGE, title, plaudit=plaudit)


def run(title: str, language: str, address: str) -> dict:
    names: dict = {"plaudit": plaudit}
    for found, text in documented.blocks(PAGE, title):
        if found == language:
            exec(compile(text.replace(ADDRESS, address), title, "exec"), names)
    return names


def test_a_verifier_as_a_function(judge_sim, capsys):
    names = run("A verifier as a function", "python", judge_sim().url)
    assert 0 <= names["helpful"]("Restart it.", prompt="My server hangs.").value <= 1
    printed = next(
        text for language, text in documented.blocks(PAGE, "A verifier as a function") if language == "text"
    )
    assert capsys.readouterr().out == printed


def test_asking_a_judge(judge_sim):
    sim = judge_sim()
    names = run("Asking a judge", "python", sim.url)
    report = names["engine"].score(responses=["Thank you.", "Go."])
    # The simulated judge knows no such question; its words are none of the choices.
    assert report.outcomes == ["invalid"] * 2 and len(sim.calls()) > 0
    assert {reason["code"] for reason in report.reasons} == {"judge.schema"}
