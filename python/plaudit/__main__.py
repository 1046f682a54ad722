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
    code = run(["plaudit", *sys.argv[1:]], imports.for_command)
    if sys.stdout is sys.stderr:
        # Modules were imported. A function of theirs may still run, and the end of the interpreter would wait for it or break it.
        sys.stderr.flush()
        os._exit(code)
    return code


if __name__ == "__main__":
    sys.exit(main())
