"""The judges of docs/guide/which-judge.md as they stand there, with the address and the model of the servers that run here."""

from __future__ import annotations

import re
from collections.abc import Callable

from launch import ROOT, Scored, Server
from test_judges import assert_right, groups

PAGE = ROOT / "docs/guide/which-judge.md"
COMPONENTS = "components: { quality: { reward: principle, mode: listwise, principles: [helpfulness] } }\n"
# Where the page speaks of a server: the section, and which of its blocks.
PLACES = {
    "vllm": ("vLLM", 0),
    "transformers": ("transformers serve", 0),
    "llama-cpp": ("llama.cpp", 0),
    "llama-cpp-python": ("llama.cpp", 1),
    "litellm": ("LiteLLM", 0),
    "vllm-reward": ("vLLM", 1),
}


def block(name: str) -> str:
    """The recipe of a server, with a component where the page has none."""
    title, at = PLACES[name]
    section = PAGE.read_text().split(f"\n## {title}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```yaml\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    recipes = [block for block in blocks if "\n  main:" in block]
    return recipes[at] if "components:" in recipes[at] else COMPONENTS + recipes[at]


def here(server: Server, address: str) -> list[str]:
    """What is replaced: where the server is, and the model."""
    return ["--set", f"judges.main.base_url={address}", "--set", f"judges.main.model={server.model}"]


def test_the_judge_of_the_page_scores(server: Server, score: Callable[..., Scored]) -> None:
    scored = score(block(server.name), groups("Plain"), *here(server, f"{server.address}/v1"))
    assert_right(scored, "listwise")


def test_the_reward_model_of_the_page_scores(reward_server: Server, score: Callable[..., Scored]) -> None:
    scored = score(
        block(reward_server.name),
        [("What is 2 + 2?", ["4", "5"])],
        *here(reward_server, reward_server.address),
    )
    assert scored.outcomes == {"scored"}, scored.said


def test_every_server_has_its_place_on_the_page() -> None:
    assert all("base_url" in block(name) for name in PLACES)
