#!/usr/bin/env python3
"""Checks that the places which name the version agree, and prints the notes of a release.

.ci/release.py check [VERSION]    # with a version: that it is the one to be released now
.ci/release.py notes VERSION      # its section of CHANGELOG.md
.ci/release.py sbom FOLDER        # FOLDER/plaudit.cdx.json, from the wheels in it
"""

import json
import re
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def section(version):
    """The heading and the text of a version in the changelog."""
    text = (ROOT / "CHANGELOG.md").read_text()
    found = re.search(rf"^## \[{re.escape(version)}\](.*)\n([\s\S]*?)(?=^## \[|^\[[^]]+\]: )", text, re.M)
    return found and (found[1].strip(), found[2].strip())


def mistakes(version):
    """What does not fit."""
    manifest = (ROOT / "Cargo.toml").read_text()
    current = re.search(r'^version = "(.*)"', manifest, re.M)[1]
    if version and version != current:
        yield f"Cargo.toml has version {current}, not {version}"
    for name, own in re.findall(r'^(plaudit[\w-]*) = \{ path = .* version = "(.*?)"', manifest, re.M):
        if own != current:
            yield f"Cargo.toml wants {name} {own}, and the workspace has {current}"
    cited = re.search(r"^version: (.*)", (ROOT / "CITATION.cff").read_text(), re.M)[1].strip("\"'")
    if cited != current:
        yield f"CITATION.cff has version {cited}, not {current}"
    if section("Unreleased") is None:
        yield "CHANGELOG.md has no section [Unreleased]"
    if version:
        heading = section(version)
        if heading is None or not re.fullmatch(r"- \d{4}-\d\d-\d\d", heading[0]):
            yield f"CHANGELOG.md has no section `## [{version}] - YEAR-MONTH-DAY`"


def bill(folder):
    """The bill of materials that maturin has put into each wheel; a component that only some platforms have is in it as well."""
    bills = []
    for path in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            names = [
                name
                for name in wheel.namelist()
                if re.search(r"\.dist-info/sboms/.*\.cyclonedx\.json$", name)
            ]
            if len(names) != 1:
                sys.exit(f"{path} has {len(names)} bills of materials")
            bills.append(json.loads(wheel.read(names[0])))
    if not bills:
        sys.exit(f"there is no wheel in {folder}")
    for part, key in (("components", "bom-ref"), ("dependencies", "ref")):
        every = {one[key]: one for bill in reversed(bills) for one in bill.get(part, [])}
        bills[0][part] = [every[name] for name in sorted(every)]
    return bills[0]


def main(verb="", argument=None):
    if verb == "check":
        found = list(mistakes(argument))
        return "\n".join(found) or 0
    if verb == "notes" and argument:
        found = section(argument)
        if found is None:
            return f"CHANGELOG.md has no section [{argument}]"
        print(found[1])
        return 0
    if verb == "sbom" and argument:
        folder = Path(argument)
        (folder / "plaudit.cdx.json").write_text(json.dumps(bill(folder), indent=1) + "\n")
        return 0
    return __doc__


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
