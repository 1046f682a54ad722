"""The quickstart notebook, run from its first cell, which installs the wheel, to its last.

It runs in an environment that has the packages of this one, but not plaudit. What its cells print must be what is committed, but for
those with the tag `varies`. `UPDATE=1` writes what they print into the notebook.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
EXAMPLES = ROOT / "examples"
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=300, kernel_name="python3", record_timing=False).execute()
nbformat.write(notebook, sys.argv[2])
"""


def folder_with_wheel(folder: Path) -> Path:
    """The examples and `dist`, as they stand in a checkout after `make wheels`."""
    wheels = Path(os.environ["PLAUDIT_BIN"]).parents[1] / "wheels"
    shutil.copytree(wheels, folder / "dist")
    shutil.copytree(EXAMPLES, folder / "examples")
    return folder / "examples"


def environment(folder: Path) -> Path:
    """A Python with pip and the packages of this environment, without plaudit."""
    venv.create(folder, with_pip=True, symlinks=True)
    (packages,) = folder.glob("lib/*/site-packages")
    for old in packages.glob(
        "setuptools*"
    ):  # older than torch wants, and found before the one of this environment
        shutil.rmtree(old)
    (packages / "trainer.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return folder / "bin" / "python"


def printed(cell: dict[str, Any]) -> str:
    parts = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell["outputs"]]
    return "".join("".join(part) for part in parts)


def kept(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook without what depends on the machine: standard error, and ports."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [output for output in cell["outputs"] if output.get("name") != "stderr"]
            for output in cell["outputs"]:
                holder, key = (output, "text") if "text" in output else (output["data"], "text/plain")
                text = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:7717", "".join(holder[key]))
                holder[key] = text.splitlines(keepends=True)
    return {**notebook, "metadata": {**notebook["metadata"], "language_info": {"name": "python"}}}


def test_the_notebook_prints_what_is_committed(tmp_path: Path) -> None:
    here, python = folder_with_wheel(tmp_path), environment(tmp_path / "environment")
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    outside |= {"PIP_NO_INDEX": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    done = subprocess.run(
        [str(python), "-c", RUN, "quickstart.ipynb", "run.ipynb"],
        cwd=here,
        env=outside,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    ran = kept(json.loads((here / "run.ipynb").read_text(encoding="utf-8")))
    file = EXAMPLES / "quickstart.ipynb"
    if os.environ.get("UPDATE") == "1":
        file.write_text(json.dumps(ran, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    committed = json.loads(file.read_text(encoding="utf-8"))
    for ours, theirs in zip(committed["cells"], ran["cells"], strict=True):
        if ours["cell_type"] == "code" and "varies" not in ours["metadata"].get("tags", []):
            assert printed(ours) == printed(theirs), "".join(ours["source"])
    everything = "".join(printed(cell) for cell in ran["cells"] if cell["cell_type"] == "code")
    told = re.search(r"the reward rose from (\S+) to (\S+)", everything)
    assert "ERROR" not in everything, everything
    assert "'code': 'judge." in everything, "a judge that is down is the reason"
    assert told and float(told[2]) > float(told[1]), "the training of the notebook learns nothing"
    text = file.read_text(encoding="utf-8")
    places = ["/tmp", "/home", "/root", "/Users", tempfile.gettempdir(), str(Path.home()), str(ROOT)]
    assert not [place for place in places if f"{place}/" in text], "a path of one machine"
