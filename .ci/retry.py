#!/usr/bin/env python3
"""Runs make targets one after the other and gives one failed test a second try, alone, after everything else.

    .ci/retry.py TARGET...

A flaky test must not cost a landing, and must not be overlooked: if exactly one test failed in all targets and passes now, the run
counts, and its last lines say `FLAKY name` with the first output. A second failed test, or a failure that is no test's, fails the run.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass

# How much of the first output is shown of a flaky test.
SHOWN = 200


@dataclass(frozen=True)
class FailedTest:
    name: str
    # The shell command that runs it alone.
    command: str
    # What must stand in the output of that command: a run of no test is no pass.
    proof: str
    output: str


def run(command: str) -> tuple[int, list[str]]:
    """Runs a command, shows what it prints and keeps it."""
    lines: list[str] = []
    with subprocess.Popen(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            lines.append(line.rstrip("\n"))
    return process.returncode, lines


def between(lines: list[str], start: str, end: str) -> str:
    """The lines from one that matches to the next that matches another pattern."""
    found: list[str] = []
    for line in lines:
        if found and re.match(end, line):
            break
        if found or re.match(start, line):
            found.append(line)
    return "\n".join(found[-SHOWN:])


def failed_tests(lines: list[str]) -> list[FailedTest]:
    """The failed tests that cargo, pytest and node name in an output, each with the command that runs it alone."""
    found: list[FailedTest] = []
    cargo = suite = ""
    for line in lines:
        if re.match(r"\S*cargo test ", line):
            cargo = line
        elif match := re.match(r"== (\S+) in (\S+)$", line):
            suite = f"python/tests/trainers/run.sh {match[2]}"
        elif "-m pytest " in line and not line.startswith((" ", "FAILED")):
            suite = line[: line.index("-m pytest ") + len("-m pytest ")]
        elif (match := re.match(r"test (.+?)(?: - should panic)? \.\.\. FAILED$", line)) and cargo:
            command = cargo if " -- " in cargo else f"{cargo} --"
            output = between(lines, rf"---- {re.escape(match[1])} stdout ----", r"---- |failures:$")
            proof = rf"test {re.escape(match[1])}( - should panic)? \.\.\. ok$"
            found.append(FailedTest(match[1], f"{command} --exact {shlex.quote(match[1])}", proof, output))
        elif (match := re.match(r"(?:FAILED|ERROR) (\S+?\.py::\S+(?:\[.*?\])?)(?: - |$)", line)) and suite:
            name = shlex.quote(match[1])
            command = f"TESTS={name} {suite}" if "run.sh" in suite else suite + name
            short = match[1].rsplit("::", 1)[1]
            output = between(lines, rf"_+ .*{re.escape(short)} _+$", r"_+ .+ _+$|=+ short test summary")
            found.append(FailedTest(match[1], command, r"=* ?1 passed", output))
        elif match := re.match(r"(?:not ok \d+ - (.+)|✖ (.+) \([\d.]+ms\))$", line):
            # As node prints to a file before version 23, and since then.
            name = match[1] or match[2]
            start = rf"(not ok \d+ - |✖ ){re.escape(name)}( \(|$)"
            output = between(lines, start, r"(not )?ok \d+ - |# Subtest|[✔✖] ")
            command = f"make test-browser ONLY={shlex.quote(f'^{re.escape(name)}$')}"
            found.append(FailedTest(name, command, r"(#|ℹ) pass 1$", output))
    return list(dict.fromkeys(found))


def errors(lines: list[str]) -> int:
    """How many commands and test binaries failed by what make and cargo say of it."""
    of_make = sum(bool(re.match(r"make(\[\d+\])?: \*\*\* \[", line)) for line in lines)
    of_cargo = [int(match[1]) for line in lines if (match := re.match(r"error: (\d+) targets? failed", line))]
    of_suites = sum(line.startswith("== failed: ") for line in lines)
    return max(of_make, sum(of_cargo), of_suites)


def main(targets: list[str]) -> int:
    failed: list[FailedTest] = []
    for target in targets:
        code, lines = run(f"make --keep-going --no-print-directory {shlex.quote(target)}")
        if code == 0:
            continue
        here = failed_tests(lines)
        failed += here
        if len(here) != 1 or errors(lines) != 1:
            print(f"\n{target} failed")
            return 1
        if len(failed) > 1:
            print("\ntwo tests failed: " + ", ".join(test.name for test in failed))
            return 1
    if not failed:
        return 0
    test = failed[0]
    print(f"\n== once more, alone: {test.command}", flush=True)
    code, lines = run(test.command)
    if code != 0 or not any(re.match(test.proof, line) for line in lines):
        print(f"\n{test.name} failed twice")
        return 1
    print(
        f"\nFLAKY {test.name}: it failed, and passed alone. Mend its cause before anything else. It first said:"
    )
    print(test.output or "(nothing)")
    print(f"FLAKY {test.name}")
    return 0


if __name__ == "__main__":
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
    sys.exit(main(sys.argv[1:]))
