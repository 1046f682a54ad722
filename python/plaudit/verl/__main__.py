"""`python -m plaudit.verl check OVERRIDES...`: see `plaudit.verl.check`."""

import sys

from plaudit.verl.check import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
