"""Judgments of JudgeBench, read as plaudit reads the replies of a judge.

A server on loopback answers with the published text. The responses of a pair stand for themselves by a word each: what the judge thought
of them is in its reply.
"""

import contextlib
import dataclasses
import http.server
import json
import pathlib
import re
import threading
from functools import partial

from .scoring import Set, Verdicts, jsonl, score

AT = "ScalerLab/JudgeBench", "e2c52c2"
WORDS = ("one", "two")
PROMPT = "Group {{ group }}: {{ responses[0].text }} or {{ responses[1].text }}?"


@contextlib.contextmanager
def answering(replies: dict[str, str]):
    """A judge that gives each group its reply. Yields its address and, by group, the word that was shown first."""
    shown = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
            group, word = re.search(r"Group (\d+): (\w+) or", asked).groups()
            shown[group] = word
            message = {"role": "assistant", "content": replies[group]}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            said = {"id": "0", "object": "chat.completion", "model": "published", "choices": [choice], "usage": usage}
            body = json.dumps(said).encode()
            # A call that was sent a second time is cut off when the other one has its reply.
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", shown
    finally:
        server.shutdown()


@dataclasses.dataclass
class Judgments(Set):
    """Each row is one reply of a judge; the result says which of the two it preferred, in the judge's own words for the sides."""

    def results(self, binary: str, rows: list[dict]) -> list[dict | None]:
        rollouts = [
            {"id": f"{number}-{word}", "group": str(number), "prompt": "x", "response": word}
            for number in range(len(rows))
            for word in WORDS
        ]
        with answering({str(number): row["reply"] for number, row in enumerate(rows)}) as (address, shown):
            recipes = [
                {
                    "components": {"right": {"weight": 1.0, **self.component, **newer}},
                    "judges": {"main": {"base_url": address, "model": "published", "concurrency": 8}},
                }
                for newer in (self.newer, {})
            ]
            found = score(binary, recipes, rollouts)
        read = []
        for number in range(len(rows)):
            sides = [found[f"{number}-{word}"] for word in WORDS]
            result = dict(sides[0])
            if all(side["outcome"] == "scored" for side in sides):
                one, two = (side["total"] for side in sides)
                if shown[str(number)] != WORDS[0]:
                    one, two = two, one
                result["verdict"] = "A>B" if one > two else "B>A" if two > one else "A=B"
            read.append(result)
        return read


def verdict(result: dict | None, expected: str | None) -> Verdicts:
    """A reply without one verdict has none here either: both are None then."""
    return [(expected, result and result.get("verdict"))]


def cases(folder: pathlib.Path):
    for file in sorted(folder.glob("*judge_name=arena_hard*.jsonl")):
        for row in jsonl(file):
            for judgment in row["judgments"]:
                yield {"reply": judgment["judgment"]["response"]}, judgment["decision"]


def sets(root: pathlib.Path) -> list[Set]:
    component = {
        "reward": "judge",
        "mode": "pairwise",
        "aggregate": "winrate",
        "prompt": PROMPT,
        "answer": {"label": "bracketed", "first": "A>B", "second": "B>A", "tie": "A=B"},
    }
    five = {"answer": {"label": "bracketed", "labels": {"A>>B": 1, "A>B": 0.5, "A=B": 0, "B>A": -0.5, "B>>A": -1}}}
    rows = partial(cases, root / "JudgeBench/outputs")
    return [Judgments("judges", *AT, "Arena-Hard judgments of two models", component, rows, verdict, five)]
