"""Writes THIRD-PARTY.txt: the licences of what is linked into the wheel and the command.

    python3 python/third_party.py            # writes it
    python3 python/third_party.py --check    # fails where it is out of date

Cargo says which crates these are; their texts come from the crates themselves. Where a crate may be used under one of several
licences, it is used under the Apache License 2.0, as plaudit is, or else under the first that `cargo deny` allows.
"""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY.txt"
# In the order in which a choice is made.
LICENCES = [
    "Apache-2.0",
    "MIT",
    "BSD-3-Clause",
    "BSD-2-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "BSL-1.0",
    "CC0-1.0",
    "Unlicense",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "CDLA-Permissive-2.0",
]
# The name of a file says which of several licences it is.
OF_ONE = {"Apache-2.0": "APACHE", "MIT": "MIT", "Unlicense": "UNLICENSE", "Zlib": "ZLIB", "BSL-1.0": "BOOST"}
HEAD = """\
Third-party software in plaudit

The Python package and the command plaudit are linked from the crates below, and hold the data that is named after them. Each crate is
used under the licence beside its name. The texts follow, each once; the Apache License 2.0 is in the file LICENSE.
"""
DATA = [
    (
        "cl100k_base and o200k_base, vocabularies of tiktoken",
        "https://github.com/openai/tiktoken",
        "Copyright (c) 2022 OpenAI, Shantanu Jain",
    ),
    ("the dictionary of jieba", "https://github.com/fxsjy/jieba", "Copyright (c) 2013 Sun Junyi"),
]
MIT = """\
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to
the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE."""


def mit(copyright: str) -> str:
    return f"MIT License\n\n{copyright}\n\n{MIT}"


def cargo(*arguments: str) -> str:
    command = ["cargo", *arguments, "--locked", "--offline"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def linked() -> list[dict]:
    """The crates that end up in the extension, which holds the command and the service as well."""
    tree = cargo(
        "tree", "-p", "plaudit-python", "-e", "normal,no-proc-macro", "--prefix", "none", "-f", "{p}"
    )
    names = {tuple(line.split()[:2]) for line in tree.splitlines()}
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    found = [one for one in packages if (one["name"], "v" + one["version"]) in names and one["source"]]
    return sorted(found, key=lambda one: (one["name"], one["version"]))


def chosen(expression: str, name: str) -> list[str]:
    """The licences of a crate that apply: of alternatives one, of a conjunction all."""
    taken = []
    for part in re.split(r"\s+AND\s+", expression.replace("(", "").replace(")", "")):
        options = [re.sub(r"\s+WITH\s+\S+", "", one.strip()) for one in re.split(r"\s+OR\s+|/", part)]
        known = [one for one in LICENCES if one in options]
        if not known:
            sys.exit(f"{name} has the licence {expression}, which is not known here")
        taken.append(known[0])
    return taken


def texts(package: dict, licences: list[str]) -> list[str]:
    """The texts that must be handed on: those of the chosen licences but Apache's own, and all notices."""
    folder = Path(package["manifest_path"]).parent
    named = re.compile(r"(?i)(licen[cs]e|copying|notice|copyright)(?!.*\.(rs|html|toml|json|c|h|go|py)$)")
    files = sorted(one for one in folder.rglob("*") if named.match(one.name) and one.is_file())
    kept = []
    for file in files:
        name = file.name.upper()
        of_one = [licence for licence, mark in OF_ONE.items() if mark in name]
        only = not of_one and licences != ["Apache-2.0"]
        if name.startswith("NOTICE") or only or set(of_one) & set(licences):
            text = file.read_text(errors="replace").replace("\r\n", "\n").strip()
            if "Apache License" not in text[:400] or name.startswith("NOTICE"):
                kept.append(text)
    return kept


def written() -> str:
    rows, blocks = [], {}
    for package in linked():
        label = f"{package['name']} {package['version']}"
        licences = chosen(package["license"] or "", label)
        rows.append(f"{label:<45} {' AND '.join(licences):<30} {package['repository'] or ''}".rstrip())
        found = texts(package, licences)
        if "MIT" in licences and not found:
            # The crate has no text of its licence; its authors stand for the holders of the copyright.
            holders = ", ".join(package["authors"]) or f"the authors of {package['name']}"
            found = [mit(f"Copyright (c) {holders}")]
        for text in found:
            blocks.setdefault(text, []).append(label)
    for name, place, copyright in DATA:
        rows.append(f"{name:<45} {'MIT':<30} {place}")
        blocks.setdefault(mit(copyright), []).append(name)
    rule = "-" * 78
    parts = [HEAD, "\n".join(rows)]
    parts += [f"{rule}\n{', '.join(names)}\n{rule}\n\n{text}" for text, names in blocks.items()]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


if __name__ == "__main__":
    text = written()
    if sys.argv[1:] == ["--check"]:
        if not FILE.exists() or FILE.read_text() != text:
            sys.exit("THIRD-PARTY.txt is out of date: make third-party")
    else:
        FILE.write_text(text)
