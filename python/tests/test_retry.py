"""`.ci/retry.py`, which gives one failed test a second try: with real pytest, and with what cargo and node print."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

CARGO = """\
echo 'cargo test --locked --workspace'
if [ -e seen ] && [ "$*" != "{again}" ]; then echo "unexpected: $*"; exit 9; fi
echo '     Running tests/main/main.rs (target/debug/deps/main-1)'
echo 'test first::works ... ok'
if [ -e seen ]; then echo 'test second::breaks ... ok'; exit 0; fi
touch seen
echo 'test second::breaks ... FAILED'
echo '---- second::breaks stdout ----'
echo 'it was late'
echo 'failures:'
echo '    second::breaks'
echo 'error: {failed} targets failed:'
exit 101
"""
NODE = """\
if [ -e seen ]; then echo '{passed}'; exit 0; fi
touch seen
echo '{failed}'
echo '  it was late'
echo '{other}'
exit 1
"""
FLAKY = """\
from pathlib import Path
def test_once():
    seen = Path(__file__).with_suffix(".seen")
    if not seen.exists():
        seen.touch()
        print("the first output")
        assert 1 == 2
def test_always():
    assert {always}
"""


def script(path: Path, text: str) -> None:
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(0o755)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with the script and a Makefile; `cargo` in it is ours."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/retry.py", tmp_path / ".ci")
    for name in ("one", "two"):
        (tmp_path / f"test_{name}.py").write_text(FLAKY.format(always=True))
    (tmp_path / "test_never.py").write_text(FLAKY.format(always=False))
    targets = [f"{name}:\n\t{sys.executable} -m pytest test_{name}.py\n" for name in ("one", "two", "never")]
    targets.append("fine:\n\t@echo fine\nlint:\n\t@false\nboth: one lint\n")
    targets.append("rust:\n\t@cargo test --locked --workspace\ntest-browser:\n\t@./node\n")
    (tmp_path / "Makefile").write_text("\n".join(targets))
    return tmp_path


def retry(project: Path, *targets: str) -> tuple[int, list[str]]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "PYTEST"))}
    environment["PATH"] = f"{project}:{environment['PATH']}"
    done = subprocess.run(
        [sys.executable, ".ci/retry.py", *targets],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout.splitlines()


def test_one_flaky_test_is_told_and_counts_as_passed(project: Path):
    code, lines = retry(project, "one", "fine")
    assert code == 0 and lines[-1] == "FLAKY test_one.py::test_once"
    told = lines[lines.index("fine") :]
    assert "the first output" in told and any(line.startswith("== once more, alone: ") for line in told)
    assert sum("1 passed" in line for line in told) == 1, "the other test of the file does not run again"


@pytest.mark.parametrize("targets", [["one", "two"], ["never"], ["one", "lint"], ["both"], ["lint"]])
def test_more_than_one_flaky_test_fails(project: Path, targets: list[str]):
    code, lines = retry(project, *targets)
    assert code == 1 and not any(line.startswith("FLAKY") for line in lines), lines


def test_a_test_that_fails_twice_fails(project: Path):
    (project / "test_never.seen").touch()
    code, lines = retry(project, "never")
    assert code == 1 and lines[-1] == "test_never.py::test_always failed twice"


def test_nothing_failed(project: Path):
    assert retry(project, "fine")[0] == 0


@pytest.mark.parametrize(("failed", "code"), [(1, 0), (2, 1)])
def test_output_of_cargo_is_read(project: Path, failed: int, code: int):
    again = "test --locked --workspace -- --exact second::breaks"
    script(project / "cargo", CARGO.format(failed=failed, again=again))
    got, lines = retry(project, "rust")
    assert got == code, lines
    assert code or (lines[-2:] == ["it was late", "FLAKY second::breaks"]), lines


@pytest.mark.parametrize(
    ("failed", "other", "passed"),
    [
        ("not ok 2 - a page (of runs)", "ok 3 - another", "# pass 1"),
        ("✖ a page (of runs) (12.5ms)", "✔ another (3ms)", "ℹ pass 1"),
    ],
)
def test_output_of_node_is_read(project: Path, failed: str, other: str, passed: str):
    script(project / "node", NODE.format(failed=failed, other=other, passed=passed))
    code, lines = retry(project, "test-browser")
    assert code == 0 and lines[-1] == "FLAKY a page (of runs)" and "  it was late" in lines, lines
