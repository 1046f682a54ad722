"""`python -m plaudit`: the `plaudit` command, run in this process."""

import os
import signal
import sys

from plaudit import imports
from plaudit._plaudit import main as run


def main() -> int:
    """Runs the `plaudit` command with the arguments of this process."""
    # Python's own handler only sets a flag, which nothing reads while the command runs.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    verb, *rest = sys.argv[1:] or [""]
    asks_trainer = any(word.partition("=")[0] == "--trainer" for word in rest)
    if verb == "doctor" and asks_trainer and not {"-h", "--help"} & set(rest):
        # The adapters know how a trainer reads a data set, and the command does not.
        from plaudit.preflight import main as check

        return check(rest)
    code = run(["plaudit", *sys.argv[1:]], imports.for_command)
    if sys.stdout is sys.stderr:
        # Modules were imported. A function of theirs may still run, and the end of the interpreter would wait for it or break it.
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
