"""MkDocs hooks: the pages of the site that are not files of docs/.

- One page for each reward, cut out of `docs/reference/rewards.md`, and an index of them.
- The Markdown files outside of docs/ (`OUTSIDE`), and the quickstart notebook.
- Links between all of these are written for GitHub. They are resolved in the repository and rewritten for the site; a linked
  file that is no page is copied to `files/`. What leads nowhere is a warning, which fails `make site`.
"""

from __future__ import annotations

import functools
import json
import logging
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger("mkdocs.hooks.plaudit")

ROOT = Path(__file__).resolve().parents[2]
REWARDS = "docs/reference/rewards.md"
NOTEBOOK = "examples/quickstart.ipynb"

# Files of the repository that are pages of the site, and where.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "bench/README.md": "project/benchmarks.md",
    "examples/README.md": "project/examples.md",
    "golden/README.md": "project/golden.md",
    NOTEBOOK: "guide/quickstart.md",
    REWARDS: "reference/rewards/index.md",
}
ICON = "crates/plaudit-serve/web/icon.svg"  # the dashboard's
SOURCES = {place: source for source, place in OUTSIDE.items()}

FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n.*?^\1`*\s*?$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\1(?!`)", re.DOTALL)
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\()([^()\s]+)(\))")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def rewards() -> tuple[str, dict[str, str]]:
    """The index of the rewards, and the section of each reward by its name."""
    index, *sections = re.split(r"^## (?=\S+$)", read(REWARDS), flags=re.MULTILINE)
    parts = [section.partition("\n") for section in sections]
    found = {name.strip(): text for name, _, text in parts}
    if list(found) != re.findall(r"^\| \[`(\S+)`\]", index, flags=re.MULTILINE):
        raise PluginError(f"the sections of {REWARDS} are not those of its table")
    if lacking := [name for name, text in found.items() if "\n### How it can be gamed\n" not in text]:
        raise PluginError(f"{REWARDS} does not say how these can be gamed: {', '.join(lacking)}")
    return index, found


def anchor(name: str) -> str:
    """The anchor that GitHub gives to the heading of a reward."""
    return re.sub(r"[^\w\- ]", "", name.lower())


def reward_page(name: str, text: str) -> str:
    """A section of the reference as a page; *How it can be gamed* becomes a box."""

    def box(found: re.Match[str]) -> str:
        lines = found[2].strip().splitlines()
        return f'{found[1]}\n!!! warning ""\n' + "\n".join(f"    {line}" for line in lines) + "\n\n"

    text = re.sub(r"^### ", "## ", text, flags=re.MULTILINE)
    text = re.sub(r"^(## How it can be gamed\n)(.*?)(?=^## )", box, text, flags=re.MULTILINE | re.DOTALL)
    return f"# {name}\n{text}"


def notebook_page(source: str) -> str:
    """A notebook as Markdown: its text, its code, and the text that its code printed."""
    parts = []
    for cell in json.loads(source)["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join(
            "".join(output.get("text") or output.get("data", {}).get("text/plain", ""))
            for output in cell["outputs"]
        )
        if printed.strip():
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Puts the rewards into the navigation."""
    rewards.cache_clear()  # `mkdocs serve` builds again when a file changes
    pages = [{name: f"reference/rewards/{name}.md"} for name in rewards()[1]]

    def replaced(entry):
        if isinstance(entry, list):
            return [replaced(item) for item in entry]
        if isinstance(entry, dict):
            return {title: replaced(value) for title, value in entry.items()}
        return [OUTSIDE[REWARDS], *pages] if entry == "reference/rewards.md" else entry

    config.nav = replaced(config.nav)
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not files of docs/."""
    whole = files.get_file_from_path("reference/rewards.md")
    if whole is not None:
        files.remove(whole)
    index, sections = rewards()
    for source, place in OUTSIDE.items():
        text = index if source == REWARDS else read(source)
        if source == NOTEBOOK:
            text = notebook_page(text)
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "site/icon.svg", abs_src_path=str(ROOT / ICON)))
    for name, text in sections.items():
        files.append(File.generated(config, f"reference/rewards/{name}.md", content=reward_page(name, text)))
    return files


def source_of(place: str) -> str:
    """The file of the repository that a page of the site comes from."""
    if place in SOURCES:
        return SOURCES[place]
    return REWARDS if place.startswith("reference/rewards/") else f"docs/{place}"


def place_of(source: str, fragment: str, files: Files, config: MkDocsConfig) -> tuple[str, str] | None:
    """Where a file of the repository, or a heading of it, stands on the site."""
    if source == REWARDS:
        for name in rewards()[1]:
            if fragment == anchor(name):
                return f"reference/rewards/{name}.md", ""
    if source in OUTSIDE:
        return OUTSIDE[source], fragment
    if source.startswith("docs/"):
        return source.removeprefix("docs/"), fragment
    if not (ROOT / source).is_file():
        return None
    # As text: MkDocs would take Markdown for a page, after all pages are known.
    place = f"files/{source}.txt" if source.endswith(".md") else f"files/{source}"
    if files.get_file_from_path(place) is None:
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return place, ""


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrites the links of a page, which are written for GitHub, outside of code."""
    here = page.file.src_uri
    source = source_of(here)
    if here == "index.md":
        page.meta["hide"] = ["navigation"]

    def rewritten(found: re.Match[str]) -> str:
        target, _, fragment = found[2].partition("#")
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target)) if target else source
        place = place_of(path, fragment, files, config)
        if place is None:
            log.warning("%s links to %s, which is no file of the repository", source, found[2])
            return found[0]
        to, fragment = place
        relative = "" if to == here else posixpath.relpath(to, posixpath.dirname(here) or ".")
        return f"{found[1]}{relative}{'#' + fragment if fragment else ''}{found[3]}"

    kept: list[str] = []

    def keep(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"\0{len(kept) - 1}\0"

    hidden = CODE.sub(keep, FENCE.sub(keep, markdown))
    text = LINK.sub(rewritten, hidden)
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda found: kept[int(found[1])], text)
    return text


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Warns of what a browser would fetch from another host."""
    for tag in re.findall(r"<(?:script|link|img|iframe)\b[^>]*>", output):
        if re.search(r"\b(?:src|href)=[\"']?(?:https?:)?//", tag) and 'rel="canonical"' not in tag:
            log.warning("%s fetches from another host: %s", page.file.src_uri, tag)
    return output
