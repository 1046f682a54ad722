#!/usr/bin/env python3
"""Runs math-verify on answers from stdin, one JSON object a line, and prints its verdicts as a JSON list.

It is called as in `bench/mathematics_peer.py`: the reference in a box, LaTeX and plain expressions.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from mathematics_peer import score  # noqa: E402

print(json.dumps([bool(score(json.loads(line))) for line in sys.stdin]))
